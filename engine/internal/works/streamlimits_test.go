package works_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	fold "taskledger/projection/works"
	"taskledger/store"
	"taskledger/work/workledger"
)

// stoppedByHolds makes a Move that exceeds a limit, and complains unless the stream has ended for it with nothing of
// the Move recorded.
func (w *world) stoppedByHolds(m workledger.Move, want string) {
	w.t.Helper()
	before := w.stream().Len()
	w.refusedByHolds(w.record(parent), &m)
	if _, err := w.record(parent).Move(context.Background(), m); err == nil {
		w.t.Errorf("one more is recorded")
	}
	is := w.task(parent)
	if !is.Final() || is.Error.Code != events.CodeHolds || !strings.Contains(is.Error.Message, want) {
		w.t.Errorf("the stream has %s, %+v", is.Status, is.Error)
	}
	if w.stream().Token != "" || w.stream().Len() != before {
		w.t.Errorf("token %q, %d holds, before %d", w.stream().Token, w.stream().Len(), before)
	}
}

// refusedByHolds makes a Move that exceeds a limit and moves the token, and complains unless it is refused and ends
// nothing. It leaves the holds alone in it.
func (w *world) refusedByHolds(s *works.Stream, m *workledger.Move) {
	w.t.Helper()
	if m.Token == "" {
		return
	}
	token := w.stream().Token
	_, err := s.Move(context.Background(), *m)
	if invalid, is := errors.AsType[*store.InvalidError](err); !is || invalid.Field != workledger.FieldHolds {
		w.t.Errorf("a token with holds that have no room: %v", err)
	}
	if w.task(parent).Final() || w.stream().Token != token {
		w.t.Errorf("it has ended the stream, with the token %q", w.stream().Token)
	}
	m.Token = ""
}

func TestStream_HasAsManyHoldsAsItMayAndIsStoppedByOneMore(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	for n := 0; n < events.MaxHolds; {
		var m workledger.Move
		for range 50 {
			m.Holds = append(m.Holds, begins(fmt.Sprint("k", n), fmt.Sprint(n)))
			n++
		}
		w.moveTo(s, m)
		w.forget()
	}
	if w.stream().Len() != events.MaxHolds {
		t.Fatalf("%d holds", w.stream().Len())
	}
	w.moveTo(s, holds(follows("k7", "x"))) // a hold that is there takes more
	w.stoppedByHolds(workledger.Move{Token: "9", Holds: []workledger.Hold{begins("z", "z")}}, "more than 10000 keys")
}

func TestStream_IsStoppedWhereTheWorksOfItsShardWouldTakeTooMuch(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	data := bytes.Repeat([]byte("1"), events.MaxHeldBytes)
	large := func(n int) workledger.Hold {
		h := begins(fmt.Sprint("k", n), fmt.Sprint(n))
		h.Change.Data = data
		return h
	}
	n := 0
	for ; fold.Of(w.state).Bytes()+fold.HoldBytes("k000")+fold.HeldBytes("000", len(data), "boom", "it bursts") <= fold.MaxBytes; n++ {
		w.moveTo(s, holds(large(n)))
		w.forget()
	}
	if n < 300 {
		t.Fatalf("%d holds take %d bytes", n, fold.Of(w.state).Bytes())
	}
	w.stoppedByHolds(workledger.Move{Token: "9", Holds: []workledger.Hold{large(n)}}, "take more than 67108864 bytes")
}

func TestStream_TakesWhenAChangeCameWithinWhatAnEventTells(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	for i, c := range []struct {
		year int
		want events.Millis
	}{{-2, 0}, {1969, 0}, {10_000, events.MaxItemTime}, {300_000, events.MaxItemTime}} {
		w.moveTo(s, workledger.Move{Open: int64(i) + 1, Oldest: time.Date(c.year, 5, 6, 7, 8, 9, 0, time.UTC)})
		if is := w.stream().Oldest; is != c.want {
			t.Errorf("the oldest change of the year %d came at %d, want %d", c.year, is, c.want)
		}
	}
	name, started, node := w.attempt(parent)
	a := command.Check(&works.Move{Task: name, Started: started, Node: node, Open: 1, Oldest: int64(events.MaxItemTime) + 1})
	if a == nil || !strings.Contains(a.Error(), "1970 to 9999") {
		t.Errorf("a later one is told by %v", a)
	}
}

// The run of a stream may have no end, and its newest errors are those that somebody looks for.
func TestStream_TellsErrorsAnewEachDayWhenItHasToldAsManyAsItMay(t *testing.T) {
	t.Parallel()
	const day = 24 * 3_600_000
	w := streamed(t)
	w.now = w.now/day*day + day - 2
	s := w.record(parent)
	failing := workledger.Move{Items: workledger.Counts{Failed: 1}}
	for len(failing.Errors) < 7 {
		failing.Errors = append(failing.Errors, workledger.ItemError{Item: "k", Code: "c", Message: strings.Repeat("m", 1022)})
	}
	failing.Items.Failed = 7
	tells := func() int {
		w.moveTo(s, failing)
		return len(w.told[len(w.told)-1].Body.(*events.TokenMoved).Errors)
	}
	n := int64(0)
	for ; tells() == 7; n++ {
		w.forget()
	}
	if n != fold.MaxErrorBytes/(7<<10) {
		t.Errorf("%d moves tell errors", n)
	}
	w.now++
	if tells() != 0 || w.show().ErrorBytes != n*7<<10 {
		t.Errorf("on the same day it tells more, of %d bytes", w.show().ErrorBytes)
	}
	w.now++
	if is := w.show().ErrorBytes; is != 0 {
		t.Errorf("%d bytes are told on a day without any", is)
	}
	if tells() != 7 || w.show().ErrorBytes != 7<<10 {
		t.Errorf("the next day it tells none, of %d bytes", w.show().ErrorBytes)
	}
}

// A simulation that finds no change behind the token ends where it began: what comes meanwhile is for the next run.
func TestStream_ASimulationOfNothingHasItsEndWhereItBegan(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	w.moveTo(w.record(parent), workledger.Move{Token: "7", Items: workledger.Counts{Done: 7}})
	w.move(parent, works.Bucket{Ended: 1})
	w.complete(parent, command.Succeeded)
	w.operate(parent, command.DoRetry)
	w.start(parent, "n-1")
	try, all := part("try", 1, 1), part("all", 1, 1)
	try.Form, all.Form, try.Mode = events.FormPrecise, events.FormPrecise, events.ModeSimulate
	w.plan("5f", try, all)
	w.begin(1)
	w.take(parent)
	s := w.record(parent)
	w.moveTo(s, workledger.Move{Token: "7"})
	before := len(w.told)
	w.moveTo(s, workledger.Move{Token: "7"})
	if len(w.told) != before {
		t.Error("it is recorded twice")
	}
	w.move(parent, works.Bucket{Ended: 1, Want: true})
	w.begin(2)
	w.take(parent)
	if p := w.position(s); p.Token != "7" || p.Until != "7" {
		t.Errorf("the full partition begins at %+v, want 7 until 7", p)
	}
}

func TestStream_TheTokenOfAPushedOneIsNotSet(t *testing.T) {
	t.Parallel()
	w := streamed(t, pushes)
	w.complete(parent, command.Released)
	w.operate(parent, command.DoSuspend)
	a := w.decide(&works.Reset{Task: string(parent), What: int64(events.ResetToken), Token: []byte("2"), Reason: "x"})
	if a.Code != command.AnswerState || !strings.Contains(a.Text, "with a source") || w.stream() != nil {
		t.Errorf("answer %d %s; stream %+v", a.Code, a.Text, w.stream())
	}
}

func TestStream_ChangesASecondLeaveOutAPause(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	token := 0
	second := func() {
		w.now += 1000
		token++
		w.moveTo(s, workledger.Move{Token: fmt.Sprint(token), Items: workledger.Counts{Done: 100}})
	}
	want := func(after string) {
		t.Helper()
		if is := w.report().Stream.ChangesPerSecond; is == nil || *is < 90 || *is > 110 {
			t.Errorf("100 changes a second %s: told %v", after, *is)
		}
	}
	for range 100 {
		second()
	}
	want("for 100 s")
	w.now += 3_600_000
	for range 20 {
		second()
	}
	want("for 20 s after an hour's pause")
}

// The permits of a stream are forgotten once it is sure that their changes are passed, and not before.
func TestPermits_OfAStreamAreForgottenWhenItsTokenHasPassedTheirChangesForLong(t *testing.T) {
	t.Parallel()
	w := streamed(t, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: "deleted", Limit: 1 << 40}}
	})
	const ahead = 10_000 // changes that may have come behind one that is open
	items := make([]uint64, 250)
	passed := uint64(0)
	for turn := range 400 { // the changes whose permits are granted now come up to 10,000 later than the token
		for i := range items {
			items[i] = passed + ahead + uint64(i)
		}
		w.permit(parent, "deleted", items...)
		passed += uint64(len(items))
		w.moveTo(w.record(parent), workledger.Move{
			Token: fmt.Sprint(turn + 1),
			Items: workledger.Counts{Done: int64(len(items))},
		})
		w.forget()
		if turn == 201 {
			w.lose("n-1")
			w.now += 3_600_000
			w.again()
		}
		if turn%50 == 49 {
			before := w.work().Parts[0].Counters[0]
			for at := passed; at < passed+ahead; at += 100 {
				w.permit(parent, "deleted", at)
			}
			if is := w.work().Parts[0].Counters[0]; is != before {
				t.Fatalf("after %d changes %d that are not passed count twice", passed, is-before)
			}
		}
	}
	if is := w.work().Permits(); is < ahead || is > 5*ahead {
		t.Errorf("%d permits of %d are remembered", is, passed)
	}
	w.move(parent, works.Bucket{Ended: 1})
	if w.work().Permits() != 0 {
		t.Errorf("%d permits of a stream that has ended are kept", w.work().Permits())
	}
}

// Where journals are dropped nothing keeps the parameters of a task that has ended. Those of a hold follow from the
// state.
func TestStream_AHoldThatFailedForGoodIsRetriedWhereNothingKeepsItsParameters(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	w.drops = true
	w.moveTo(w.record(parent), holds(begins("k", "1")))
	params := func() fold.HoldTask {
		t.Helper()
		is := w.task(hold(1))
		text, err := is.Params.JSON()
		p, of := fold.TaskOfHold(text, is.ID)
		if err != nil || !of {
			t.Fatalf("parameters %s, %v", text, err)
		}
		return p
	}
	if p := params(); p.HoldOf != parent || p.Stream != "all" {
		t.Errorf("the hold is of %+v", p)
	}
	w.startHold(1, "n-3")
	w.complete(hold(1), command.Failed, func(c *command.Complete) { c.ByPolicy = false })
	w.operate(hold(1), command.DoRetry)
	w.startHold(1, "n-3")
	if p := params(); p.HoldOf != parent || p.Hold != 1 {
		t.Errorf("retried, the hold is of %+v", p)
	}
	if left := w.held(w.record(hold(1)), 0); left != "1" {
		t.Errorf("it has %s", left)
	}
	w.complete(parent, command.Failed, func(c *command.Complete) { c.ByPolicy = false })
	if a := w.decide(&command.Operate{Task: parent, Do: command.DoRetry}); a.Code != command.AnswerMerge {
		t.Errorf("the stream itself: answer %d %s", a.Code, a.Text)
	}
}

// It gets on, though a pushed stream has no token that moves.
func TestStream_HasStalledOnlyIfNothingIsProcessed(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]events.WorkForm{"precise": events.FormPrecise, "imprecise": events.FormImprecise, "pushed": events.FormPushed} {
		w := streamed(t, func(p *events.WorkPartition) { p.Form = form })
		stalled := func() events.Millis { return w.report().Partitions[0].StalledSince }
		s := w.record(parent)
		for range 120 {
			w.now += 10_000
			m := workledger.Move{Open: 3, Oldest: time.UnixMilli(int64(w.now) - 3000)}
			if form != events.FormImprecise {
				m.Items.Done = 100
			}
			w.moveTo(s, m)
		}
		last := w.now
		if is := stalled(); is != 0 {
			t.Errorf("%s: it gets on, and has stalled since %d, %d ms ago", name, is, w.now-is)
		}
		w.now += 11 * 60_000
		w.moveTo(s, workledger.Move{Open: 4, Oldest: time.UnixMilli(int64(last) - 3000)})
		if is := stalled(); is != last {
			t.Errorf("%s: nothing was processed since %d, and it has stalled since %d", name, last, is)
		}
		w.moveTo(s, workledger.Move{})
		quiet := w.now
		w.now += 11 * 60_000
		if is := w.report(); is.Partitions[0].StalledSince != 0 || is.Stream.QuietSince != quiet {
			t.Errorf("%s: nothing comes since %d, and it has stalled since %d, is quiet since %d", name, quiet,
				is.Partitions[0].StalledSince, is.Stream.QuietSince)
		}
	}
}
