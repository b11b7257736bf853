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
	SubReleased                       // the last attempt was given back, and it waits for the next one
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
	since = t.waitsSince()
	switch s = t.substatus(t.Due <= now); s {
	case SubRunning:
		since = t.StartedAt
	case SubSuspended:
		since = t.waited().SuspendedAt
	case SubReady:
		since = max(since, t.Due)
	}
	return s, since
}

// substatus is the task's substatus where its time has come, or has not.
func (t *Task) substatus(due bool) Substatus {
	switch {
	case t.OnNode():
		return SubRunning
	case t.Final() && t.Error != nil && t.Error.Code == events.CodeCancelled:
		return SubCancelled
	case t.Final():
		return SubFinal
	case t.Suspended:
		return SubSuspended
	case due:
		return SubReady
	case t.Status == Running:
		return waitsFor[t.waited().Cause]
	case t.Status == Failure && !t.RunEnded:
		return SubRetry
	}
	return SubScheduled
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

// Tally is how many tasks have a status and a substatus.
type Tally [Failure + 1][SubCancelled + 1]int32
