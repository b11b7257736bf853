package projection

import (
	"fmt"
	"strconv"
	"strings"

	"taskledger/events"
)

// Substatus is a word that says more than the status: what a task does now, waits for or has come to.
type Substatus uint8

// The substatuses; the zero value is that of no task.
const (
	SubReady     Substatus = 1 + iota // it may start, and waits for a slot
	SubScheduled                      // it waits for the time of its first run, of a repetition, or of a further run that somebody asked for
	SubRetry                          // its last attempt failed, and it waits for the next one
	SubSnoozed                        // its function asked for a later attempt, and it waits for that
	SubLost                           // the node of its last attempt has gone, and it waits for the next attempt
	SubReleased                       // its node gave the last attempt back, and it waits for the next one
	SubSuspended                      // somebody keeps it from starting
	SubRunning                        // an attempt runs
	SubFinal                          // it has ended, and does not run again unless somebody asks
	SubCancelled                      // it has ended because somebody cancelled it
)

var substatusNames = [...]string{"none", "ready", "scheduled", "retry", "snoozed", "lost", "released", "suspended", "running", "final", "cancelled"}

// String returns the word.
func (s Substatus) String() string {
	if int(s) < len(substatusNames) {
		return substatusNames[s]
	}
	return "Substatus(" + strconv.Itoa(int(s)) + ")"
}

// MarshalText is String.
func (s Substatus) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseSubstatus.
func (s *Substatus) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSubstatus(string(b))
	return err
}

// Substatuses returns every word.
func Substatuses() []string { return substatusNames[1:] }

// ParseSubstatus reads what String returns.
func ParseSubstatus(s string) (Substatus, error) {
	for i, name := range Substatuses() {
		if s == name {
			return Substatus(i + 1), nil
		}
	}
	return 0, fmt.Errorf("substatus %q: want one of %s", s, strings.Join(Substatuses(), ", "))
}

// Substatus returns the task's substatus at a time, and since when it has it. What is paused, or has no node to run on, is
// ready all the same: a task knows of itself alone.
func (t *Task) Substatus(now events.Millis) (s Substatus, since events.Millis) {
	switch since = t.waitsSince(); {
	case t.OnNode():
		return SubRunning, t.StartedAt
	case t.Final() && t.Error != nil && t.Error.Code == events.CodeCancelled:
		return SubCancelled, since
	case t.Final():
		return SubFinal, since
	case t.Suspended:
		return SubSuspended, t.waited().SuspendedAt
	case t.Due <= now:
		return SubReady, max(since, t.Due)
	case t.Status == Running:
		return waitsFor[t.waited().Cause], since
	case t.Status == Failure && !t.RunEnded:
		return SubRetry, since
	}
	return SubScheduled, since
}

// waitsFor is the substatus of a RUNNING task on no node, by the cause.
var waitsFor = map[events.Kind]Substatus{events.KindSnoozed: SubSnoozed, events.KindLost: SubLost, events.KindReleased: SubReleased}

// waitsSince is since when the task waits as it does, or has ended.
func (t *Task) waitsSince() events.Millis {
	switch since := t.waited().Since; {
	case since != 0:
		return since
	case t.Status == Created:
		return t.CreatedAt
	}
	return t.EndedAt
}

// Changed is when the last change began that its substatus depends on.
func (t *Task) Changed() events.Millis {
	w := t.waited()
	return max(t.CreatedAt, t.StartedAt, t.EndedAt, w.Since, w.SuspendedAt)
}
