package tasklog

import (
	"context"
	"errors"
	"math"

	"taskledger/events"
)

// ErrTaken reports that a log does not end where its writer supposes: somebody else writes it. Nothing was stored,
// and nothing that this writer sends will be.
var ErrTaken = errors.New("the log has another writer")

// EveryLife stands for all lives of a shard where logs are forgotten. No Created has it.
const EveryLife events.Ref = math.MaxUint64

// Store keeps logs, and may remove the oldest batches of all when it has more than it was made for. Its methods may
// be called concurrently. Every call ends within seconds, also where the store is away. What is passed to a Store
// is not altered, and belongs to the caller again when the call returns; what a Store returns is not altered by
// anybody. Errors wrap store.ErrUnavailable where the store cannot be asked.
type Store interface {
	// Append stores a batch behind the end of a log, and returns the end from then on. To send it again as it is,
	// after an error of unknown outcome, stores it once. A log whose last batch the store has removed of itself
	// goes on with any batch. It wraps ErrTaken if the log ends elsewhere, and store.ErrRefused for what breaks a
	// rule of CheckAppend or is too large for the store: then nothing was stored, and never will be. After any
	// other error the outcome is unknown.
	Append(ctx context.Context, of Attempt, after End, b Batch) (End, error)
	// Read returns the batches of an attempt that have lines in the range, whole and in order. A log that does not
	// exist is empty, and so is a range that ends before it begins. Batches that cannot be read are left out, as if
	// they were missing.
	Read(ctx context.Context, of Attempt, r Range) (Stretch, error)
	// Trim removes the batches of an attempt up to an end that Append returned, or all of them up to Whole. To trim
	// again is no error. After an error some may have been removed.
	Trim(ctx context.Context, of Attempt, upTo End) error
	// Forget removes the logs of those attempts of a life whose numbers are below before; 0 = of all. Of EveryLife it
	// removes all logs of the shard, whatever before is. To forget what is not there is no error. After an error some
	// may have been removed.
	Forget(ctx context.Context, shard uint16, life events.Ref, before uint32) error
	// Lives returns a page of the lives of a shard that have a log, each at least once on all pages together, so
	// that a sweep finds those which nobody has forgotten. It begins with page 0; next is the page to ask for then,
	// 0 = this was the last one. A page has 100,000 lives at most. A life that begins or is forgotten between two
	// pages may hide another one from this sweep.
	Lives(ctx context.Context, shard uint16, page int) (lives []events.Ref, next int, err error)
}

// Reader reads logs: see Store.Read.
type Reader interface {
	Read(ctx context.Context, of Attempt, r Range) (Stretch, error)
}

// Range selects lines of an attempt. The zero value selects all.
type Range struct {
	From  uint64        // number of the first line; 0 = from the beginning
	Since events.Millis // the line's time, inclusive
	Until events.Millis // the line's time, inclusive; 0 = without an end
	// Bytes of text end a stretch behind the batch that reaches them; 0 = 256 KiB. So a stretch has less than
	// MaxBatchBytes more. It has MaxStretchBatches at most, too, since each may take a question of its own.
	Bytes int
}

// MaxStretchBatches bounds the batches of a stretch.
const MaxStretchBatches = 100

// DefaultBytes is the value of Range.Bytes where that is 0.
const DefaultBytes = 256 << 10

// Stretch is a part of the log of an attempt.
type Stretch struct {
	Batches []Batch
	Before  uint64 // number of the last line that stands in the log before the first of Batches; 0 = none does
	Last    uint64 // number of the last line of the log; 0 = the log is empty
	More    bool   // lines of the range follow, from Batches[len(Batches)-1].Last()+1 on
	// Oldest is told of an empty log: the store has nothing, of any attempt, from before that time. 0 = it has lost
	// nothing that it knows of.
	Oldest events.Millis
}
