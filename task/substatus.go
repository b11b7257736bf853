package task

import (
	"fmt"
	"strconv"
	"strings"
)

// Substatus is a word that says more than the status: what a task does now, waits for or has come to.
type Substatus uint8

// The substatuses; no task has the zero value.
const (
	SubReady     Substatus = 1 + iota // it may start, and waits for a slot
	SubScheduled                      // it waits for the time of its first run, a repetition, or a further run
	SubRetry                          // its last attempt failed, and it waits for the next one
	SubSnoozed                        // its function asked for a later attempt, and it waits for that
	SubLost                           // the node of its last attempt has gone, and it waits for the next attempt
	SubReleased                       // the last attempt was given back, and it waits for the next one
	SubSuspended                      // somebody keeps it from starting
	SubRunning                        // an attempt runs
	SubFinal                          // it has ended, and does not run again unless somebody asks
	SubCancelled                      // it has ended because somebody cancelled it
)

var substatusNames = [...]string{
	"none", "ready", "scheduled", "retry", "snoozed", "lost", "released", "suspended", "running", "final", "cancelled",
}

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

// Substatuses returns the words of all substatuses, in the order of the constants. The caller must not change the
// slice.
func Substatuses() []string { return substatusNames[1:] }

// ParseSubstatus reads a word that String returns. Its error, for people, lists the words.
func ParseSubstatus(s string) (Substatus, error) {
	for i, name := range Substatuses() {
		if s == name {
			return Substatus(i + 1), nil
		}
	}
	return 0, fmt.Errorf("substatus %q: want one of %s", s, strings.Join(Substatuses(), ", "))
}
