package item

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"taskledger/events"
)

// Item is an item as it is now, or was when it was answered.
type Item struct {
	ID    int64 // 1 to 2^53, in the order of changes
	Group string
	At    events.Millis // available from then on; until then it is its owner's
	Owner int64         // who last added, updated or claimed it, also after it fell due
	// Claims counts the claims of the item since it was added, or since a change gave it other data. It is 0 in the
	// answer to an update that changed the item.
	Claims int64
	Data   []byte
}

// When is a point in time: above 0 in milliseconds since 1970, else that many milliseconds after the entry that
// decides. 0 = now.
type When int64

// Add asks for a new item.
type Add struct {
	Group string
	At    When
	Data  []byte
}

// Change asks for a new version of an item. Its group stays.
type Change struct {
	ID    int64
	Group string // "" = whatever it is; else it must be the item's
	At    When
	Data  []byte
	Keep  bool // the data stay as they are; Data must be nil
}

// Update asks for changes of many items of a store: all of them, or none. With Depends alone it is a check.
type Update struct {
	Client int64  // who asks, 1 to 2^53
	Key    string // a repeated update with this key is answered as the first was; "" = none
	// Age tells, for a repetition, how long ago the update was first asked; 0 = this is the first time, or nobody
	// knows.
	Age time.Duration
	// Within bounds how many requests of the client, a repetition itself with them, can have been carried out between
	// the first time that it was asked and its answer; 0 = nobody has counted them. A store remembers the last 64.
	Within  int
	Depends []int64 // must be there
	Deletes []int64
	Changes []Change
	Adds    []Add
}

// Claim asks for one available item of a group.
type Claim struct {
	Client   int64
	Key      string        // a repeated claim with this key is answered with the same item; "" = none
	Age      time.Duration // as Update.Age
	Group    string
	Duration time.Duration // for how long it is the client's: 1 ms to 24 h
	Wait     time.Duration // for how long to wait for one: 0 to 60 s
	Depends  []int64       // must be there; checked before the group is looked at
}

// Page asks for items of a group, by id.
type Page struct {
	Group  string
	After  int64 // the id before the first one; 0 = from the beginning
	Limit  int   // at most so many; 0 = as many as fit an answer
	Owned  bool  // also items that are not available
	Linear bool  // true reflects everything that was committed before the question
}

// Group counts the items of a group, each as one that is available, waits or is claimed.
type Group struct {
	Name      string
	Available int64
	Waiting   int64         // those that nobody has claimed, and whose time has not come
	Claimed   int64         // those that were claimed, and whose time has not come: Claims of the item is above 0
	Bytes     int64         // of the data of all
	Oldest    events.Millis // since when the oldest of those that are available is; 0 = none is
}

// Problem says why an update or a claim was refused.
type Problem struct {
	Field string // "depends", "deletes", "updates" or "adds"
	ID    int64  // of the item; 0 for an item to be added
	Kind  Kind
	Text  string // what is wrong with it, for people
}

// Kind classifies a problem with an item, for programs. A program that does not know a kind takes it for a refusal.
type Kind string

// The kinds of problems.
const (
	NotThere   Kind = "not-there"   // it was changed or removed, or there never was one
	Held       Kind = "held"        // another client has it until its time comes
	OtherGroup Kind = "other-group" // it is not of the group that the change names
)

// String says what is wrong with which item of which field.
func (p Problem) String() string {
	if p.ID == 0 {
		return p.Field + ": " + p.Text
	}
	return fmt.Sprintf("%s: task %d: %s", p.Field, p.ID, p.Text)
}

// ConflictError reports that the items of a store do not allow an update or a claim. Nothing was changed.
type ConflictError struct {
	Store    string
	Problems []Problem // all of them, in the order depends, deletes, updates, adds
}

// Error names the store and every problem.
func (e *ConflictError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return "store " + e.Store + ": " + strings.Join(texts, "; ")
}

// ErrForgotten is wrapped, with task.ErrUnknown, when a repeated request is not known and its key may have been
// forgotten.
var ErrForgotten = errors.New("the store may have forgotten the key: the request may have been carried out")

// From returns the point in time, counted from now if it is so much after it; beyond any time it is below 0.
func (w When) From(now events.Millis) events.Millis {
	if w > 0 {
		return events.Millis(w)
	}
	return now - events.Millis(w)
}
