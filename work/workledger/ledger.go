package workledger

import (
	"context"
	"errors"
	"time"

	"taskledger/task"
)

// ErrOver is wrapped by the error of an attempt that is over, or runs elsewhere: what it reports does not count.
var ErrOver = errors.New("the attempt is over or runs elsewhere")

// ErrGone is wrapped by the error of an attempt of a worker whose work is gone.
var ErrGone = errors.New("the work is gone")

// ErrWaits is wrapped by the error of an attempt of a hold that cannot begin before the stream runs again.
var ErrWaits = errors.New("its stream has to run again")

// Key is the key by which the context of an attempt holds an Opener.
type Key struct{}

// Opener opens the record of the work of an attempt.
type Opener func(ctx context.Context, a task.Attempt) (Access, error)

// Access lets an attempt reach the record of its work.
type Access struct {
	Ledger Ledger
	Stream Stream // nil = the Opener knows none
	Worker bool   // a worker makes the attempt, not the own task of the work
	Hold   bool   // the task of a hold makes it
	Params []byte // of the work's own task, JSON text
	// Partition is the id of the one that the hold is of; "" = the full one.
	Partition string
}

// Ledger holds the record of a work for one attempt of its task, or of one of its workers. The engine implements it by
// commands to the owner of the record. All calls but Permit come from one goroutine; Permit may be called concurrently.
//
// A nil error means that what was told is recorded, durably. An error ends the attempt, which returns it wrapped.
type Ledger interface {
	// Open returns the run that the work is in. If it is in none, the attempt of the work's own task begins one with the
	// plan. Of a run that was begun by another definition the recorded plan is returned.
	Open(ctx context.Context, plan Plan) (Opened, error)
	// Begin begins the partition that Next asked to begin.
	Begin(ctx context.Context, b Beginning) error
	// Next takes the report on the bucket that the attempt had, and gives it another one, unless Last is set: then it
	// answers Stopped.
	Next(ctx context.Context, r Report) (Answer, error)
	// Permit reports whether an item may be counted by a counter of the partition. An item that was permitted before is
	// permitted again and counted once. Once a counter has tripped, none that it has not permitted is permitted.
	Permit(ctx context.Context, a Ask) (bool, error)
}

// Opened is a run of a work.
type Opened struct {
	Run     int64     // 1 for the first one of the task
	Started time.Time // of the run
	Plan    Plan      // as it is recorded
}

// Beginning tells how many items a partition has.
type Beginning struct {
	Partition int // its place in the plan, from 0 on
	Counted   bool
	Expected  int64 // items, if Counted
}

// Report tells what became of the bucket of an attempt. The zero value tells of none.
type Report struct {
	Partition int   // place in the plan, from 0 on
	Bucket    int64 // 0 = the attempt had none
	// Returned tells that the bucket is given back: somebody has to work on all of it again, and Items and Errors are
	// zero. Otherwise it is done. Whatever ends an attempt gives its bucket back, so a Ledger need not record this.
	Returned bool
	// Cause is the reason of Returned: an *ItemsError, the cause of the context, or what else ended the attempt.
	Cause  error
	Items  Counts
	Errors []ItemError // the first ones, at most MaxErrors of MaxErrorBytes
	Last   bool        // the attempt ends, and wants no other bucket
}

// Counts counts items by what became of them.
type Counts struct {
	Done    int64
	Failed  int64
	Skipped int64
}

// ItemError tells why an item failed. Its texts are UTF-8, and cut where they are long.
type ItemError struct {
	Item    string // its key; without one "#" and its ordinal in the bucket, from 1 on
	Code    string // as behaviors.Code gave it, "failed" or "panic"
	Message string
}

// The limits of the errors that a bucket reports.
const (
	// MaxErrors bounds the number of errors.
	MaxErrors = 20
	// MaxErrorBytes bounds the bytes of their texts together.
	MaxErrorBytes = 8 << 10
	// MaxMessageBytes bounds a Message, and MaxItemBytes an Item.
	MaxMessageBytes = 1 << 10
	MaxItemBytes    = 256
)

// State says what an attempt does next.
type State uint8

// The states.
const (
	// Stopped ends the attempt: the work is suspended, has ended, or the attempt has said that it wants nothing more.
	Stopped State = iota
	// Finished ends the attempt: every partition has ended.
	Finished
	// Waiting ends the attempt: no bucket is free, and other workers have some.
	Waiting
	// Starting asks the attempt to count the items of a partition, and to begin it.
	Starting
	// Working gives the attempt a bucket.
	Working
)

// Answer is the answer to a report.
type Answer struct {
	State     State
	Partition int   // of Starting and Working: place in the plan, from 0 on
	Bucket    int64 // of Working: the number, from 1 on
	// Totals has one for each partition, in their order, with Finished of the work's own task.
	Totals []Total
}

// Total tells what became of a partition.
type Total struct {
	Buckets int64
	Items   Counts
}

// Ask names an item that shall be counted. An item that is processed again, since its bucket was given back, has the
// same names.
type Ask struct {
	Partition int // place in the plan, from 0 on
	Bucket    int64
	Counter   string
	// Item holds the first 8 bytes of a SHA-256 of the bucket and the key of the item; without a key, of its ordinal in
	// the bucket. It is big-endian.
	Item uint64
	Mode Mode // counts of Full and of Simulate are apart
	// Reason tells, of the counter of a rule, why the work stops if the item is not permitted: UTF-8, at most
	// MaxMessageBytes.
	Reason string
}
