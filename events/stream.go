package events

import (
	"strconv"
	"strings"
)

// A stream is a work with a partition of one bucket, which stays open while changes come. What it has processed is told
// by a token, and what it could not process is held: apart, as tasks of their own.
const (
	// MaxTokenBytes bounds a token, and what names a change that is held.
	MaxTokenBytes = 4 << 10
	// MaxChangeKeyBytes bounds the key of a change.
	MaxChangeKeyBytes = 1 << 10
	// MaxHeldBytes bounds the data of the changes of a hold together, and so those of one change.
	MaxHeldBytes = 192 << 10
	// MaxHeldChanges bounds the changes of a hold.
	MaxHeldChanges = 1000
	// MaxHolds bounds the holds of a stream, parked ones included.
	MaxHolds = 10_000
	// MaxHeldMessageBytes bounds the text that tells why a change is held.
	MaxHeldMessageBytes = 1 << 10
)

// WorkForm says whether a partition is cut into buckets or is a stream, and of which form.
type WorkForm uint8

// The forms.
const (
	FormBuckets   WorkForm = iota
	FormPrecise            // changes have a token each
	FormImprecise          // changes may share a token
	FormPushed             // messages are acknowledged to their source
	workFormEnd
)

// TokenMoved records how far a stream has come, while its bucket is open.
type TokenMoved struct {
	Attempt Ref    // the Started of the attempt that has the bucket
	Token   string // all changes up to it are processed or held; "" = the token stays
	// Simulated tells that the token of the stream stays: Token tells how far a partition has come that moves none.
	Simulated bool
	Items     ItemCounts  // since the move before
	Errors    []ItemError // the first of Items
	Open      uint64      // changes that are known and not processed
	Oldest    Millis      // when the oldest of them came; 0 = there is none, or it is not known
}

// ChangeHeld adds a change to a hold of a stream, or begins one with it: then the hold has a new number, and the task
// that processes its changes is created in the same entry.
type ChangeHeld struct {
	Attempt   Ref    // the Started of the attempt that has the bucket
	Hold      uint32 // number of the hold
	Partition uint32 // number of the partition that had the change
	Key       string
	At        string // names the change among those of the stream; "" = nothing does
	Data      []byte
	Code      string // tells, with Message, why the change is held; both are empty if an earlier one of its key is
	Message   string
	Passed    bool // later changes of the key pass the hold
}

// HoldMoved tells that the first changes of a hold are processed.
type HoldMoved struct {
	Hold  uint32
	Done  uint32 // how many changes are processed, from the first one on
	Ended bool   // none is left, and the key is free
}

// HoldID returns the id of the task that processes the changes of a hold, by its number: the same affinity has both.
func HoldID(parent TaskID, number uint32) TaskID { return besideID(parent, 'h', number) }

// HoldNumber is the reverse of HoldID; 0 = the id is none of a hold of the task.
func HoldNumber(parent, id TaskID) uint32 {
	rest, of := strings.CutPrefix(string(id), string(parent))
	if !of || len(rest) < 3 {
		return 0
	}
	number, err := strconv.ParseUint(rest[2:], 10, 32)
	if err != nil || number == 0 || HoldID(parent, uint32(number)) != id {
		return 0
	}
	return uint32(number)
}
