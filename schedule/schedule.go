package schedule

import (
	"errors"
	"math"

	"taskledger/events"
)

// ErrNotFound is wrapped when there is no schedule of a name.
var ErrNotFound = errors.New("no such schedule")

// ErrChanged is wrapped when a schedule is not, or no longer, as the caller has seen it.
var ErrChanged = errors.New("the schedule has changed since it was seen")

// Version names a definition of a schedule: each Set that changes it makes another one. Ticks, pauses and backfills do
// not.
type Version = events.Ref

// Absent stands for the version of a schedule that is not there: a Set with it makes one, and changes none.
const Absent Version = math.MaxUint64

// Schedule describes a schedule at a time.
type Schedule struct {
	Name       string        `json:"name"`
	Definition Definition    `json:"definition"`
	Version    Version       `json:"version"`
	SetBy      string        `json:"set_by,omitempty"`
	SetAt      events.Millis `json:"set_at"`
	// Next is the next tick, Last the last one that was decided: with a run or without. Zero stands for none.
	Next   events.Millis `json:"next,omitempty"`
	Last   events.Millis `json:"last,omitempty"`
	Active int           `json:"active"` // runs that have not ended
	Kept   int           `json:"kept"`   // runs that have ended and are kept
	Paused *Pause        `json:"paused,omitempty"`
	Fill   *Fill         `json:"backfill,omitempty"`
	// GaveUp is when ended runs were given up last that the schedule was to keep, for want of room; zero = never.
	GaveUp events.Millis `json:"gave_up,omitempty"`
	Why    string        `json:"why,omitempty"` // a tick is due and not decided; "" = none is
	// UUIDs repeats that of Definition in JSON, where a definition has no such member. The HTTP API fills it in.
	UUIDs bool `json:"uuids,omitempty"`
}

// Setting says how a definition is set.
type Setting struct {
	Seen   Version // what the caller knows; 0 = any, Absent = none
	Reason string  // for people, in the history of the schedule; at most 256 bytes, "" = none
}

// ByHand describes a run that somebody asks for.
type ByHand struct {
	Key      string // makes a repetition share the run, at most 239 bytes; "" = none
	Priority int64  // 1 to 9,223,371; 0 = the schedule's
}

// Filter selects schedules: those that have all that it names. The zero Filter selects every one.
type Filter struct {
	Prefix   string // of their names
	Behavior string
	Paused   bool // those that are paused
}

// Pause says who paused a schedule, when and why.
type Pause struct {
	By     string        `json:"by,omitempty"`
	Reason string        `json:"reason,omitempty"`
	Since  events.Millis `json:"since"`
	Failed events.TaskID `json:"failed,omitempty"` // the run whose failure paused it
}

// Fill is a backfill under way.
type Fill struct {
	From  events.Millis `json:"from"`
	To    events.Millis `json:"to"`
	Next  events.Millis `json:"next,omitempty"`
	Ticks int           `json:"ticks"` // of all
	Left  int           `json:"left"`  // that are not decided
	By    string        `json:"by,omitempty"`
	Since events.Millis `json:"since"`
}
