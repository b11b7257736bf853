package projection_test

import (
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

func TestWait_TellsWhoCancelledAndWhoSuspendedApart(t *testing.T) {
	t.Parallel()
	cancel := func(j *journal) { by(j, "ada", &events.CancelRequested{Reason: "wrong customer"}) }
	suspend := func(j *journal) { by(j, "olga", &events.Suspended{Reason: "the disk is full"}) }
	resume := func(j *journal) { by(j, "olga", &events.Resumed{}) }
	fail := func(j *journal) { by(j, "", &events.Failed{Error: events.Error{Code: "cancelled"}, Run: 1}) }
	cancelled, suspended := [2]string{"ada", "wrong customer"}, [2]string{"olga", "the disk is full"}
	none := [2]string{}
	for name, c := range map[string]struct {
		steps             []func(*journal)
		cancel, suspended [2]string
	}{
		"cancelled, then suspended":             {[]func(*journal){cancel, suspend}, cancelled, suspended},
		"suspended, then cancelled":             {[]func(*journal){suspend, cancel}, cancelled, suspended},
		"both, and its attempt has ended":       {[]func(*journal){cancel, suspend, fail}, cancelled, suspended},
		"suspended after its end":               {[]func(*journal){cancel, fail, suspend}, cancelled, suspended},
		"resumed":                               {[]func(*journal){suspend, cancel, resume}, cancelled, none},
		"cancelled, and resumed after its end":  {[]func(*journal){cancel, fail, suspend, resume}, cancelled, none},
		"suspended, and the attempt has failed": {[]func(*journal){suspend, fail}, none, suspended},
		"suspended by two":                      {[]func(*journal){suspend, func(j *journal) { by(j, "ada", &events.Suspended{}) }}, none, suspended},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJournal(t)
			j.add("a", j.created())
			j.add("a", j.started("a"))
			j.seal(time.Second)
			for _, do := range c.steps {
				do(j)
			}
			var w wire.Writer
			j.state.Task("a").Encode(&w)
			r := wire.NewReader(w.B)
			for where, task := range map[string]*projection.Task{"folded": j.state.Task("a"), "read back": projection.DecodeTask(r)} {
				wait := *task.Wait
				if got := [2]string{wait.By, wait.Reason}; got != c.cancel {
					t.Errorf("%s: cancelled by %q, want %q", where, got, c.cancel)
				}
				if got := [2]string{wait.SuspendedBy, wait.SuspendedFor}; got != c.suspended {
					t.Errorf("%s: suspended by %q, want %q", where, got, c.suspended)
				}
			}
		})
	}
}

// by adds an event for which a principal has asked, in an entry of its own.
func by(j *journal, principal string, body events.Body) {
	ev := j.next("a", body)
	ev.Origin = j.entry.AddOrigin(events.Origin{Sender: "c-1", Number: uint64(j.now), Caller: events.Caller{Principal: principal}})
	j.addEvent(ev)
	j.seal(time.Second)
}
