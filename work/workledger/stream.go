package workledger

import (
	"context"
	"time"
)

// Form says whether a partition is cut into buckets or is a stream, and of which form.
type Form uint8

// The forms.
const (
	// Bucketed partitions are cut into buckets.
	Bucketed Form = iota
	// Precise streams have changes with a token each.
	Precise
	// Imprecise streams have changes that may share a token.
	Imprecise
	// Pushed streams have messages, which are acknowledged to their source.
	Pushed
)

// Stream holds the record of a stream for one attempt, beside its Ledger. A stream has one bucket, which the attempt
// has while it calls Position and Move. The engine implements it. All calls come from one goroutine at a time.
//
// A nil error means that what was told is recorded, durably. An error ends the attempt, which returns it wrapped.
type Stream interface {
	// Position returns where the partition under way begins.
	Position(ctx context.Context) (Position, error)
	// Move records all of a Move, or at most some of its Holds, which come again: an entry takes so many. If there are
	// Freed keys, their holds have ended, and the attempt processes the changes that it wanted to append itself before
	// it moves again, with the Fence of the answer. After an error it moves again only if that is a
	// *store.InvalidError or of package task, which tell that nothing else was recorded.
	Move(ctx context.Context, m Move) (Moved, error)
	// Held is for the attempt of a hold's task. It takes how many changes of the hold the attempt has processed since it
	// last asked, and returns those that are left, in their order: at most MaxHeldBytes of them. None: the hold has
	// ended, and the attempt succeeds.
	Held(ctx context.Context, processed int) ([]HeldChange, error)
}

// Position tells where a stream goes on.
type Position struct {
	Token string // from which changes are fetched; "" = from the beginning
	// Until is the token at which the simulation before this partition has ended; "" = there is no such end.
	Until string
	// Held has the hash of each key with a hold that has not ended: the first 8 bytes of its SHA-256, big-endian.
	Held []uint64
	// Fence is above the fencing token of every attempt that has begun so far in the shard of the stream. 0 = the record
	// knows none.
	Fence uint64
	Open  int64 // changes that were told last to be known and not processed
	// Counted tells how many changes of the partition the run has counted so far. Those behind Token are not among them.
	Counted int64
}

// FieldHolds is the field of a store.InvalidError by which a record refuses a Move for whose holds it has no room, if
// the Move tells more than those. One of holds alone ends the stream.
const FieldHolds = "holds"

// Move tells what became of changes since the last Move of the attempt.
type Move struct {
	// Token belongs to the last change before which none is open. "" leaves the token as it is.
	Token  string
	Items  Counts
	Errors []ItemError // the first ones, as in Report
	Open   int64       // changes that are known and not processed
	Oldest time.Time   // when the oldest of them came; zero without any
	Holds  []Hold      // at most MaxHeldBytes of changes
}

// Moved answers a Move.
type Moved struct {
	Freed []string // keys of changes to append that have no hold any more
	Fence uint64   // with Freed, as in Position
}

// Hold asks for a task that processes a change, and the later ones of its key, apart from the stream.
type Hold struct {
	Key    string
	Append bool // to the hold that the key has; otherwise a hold begins
	Change HeldChange
	// Parked begins the hold with its task suspended, until somebody resumes it.
	Parked bool
	// Passed lets later changes of the key pass the hold.
	Passed bool
}

// HeldChange is a change of a hold.
type HeldChange struct {
	// At names the change among those of its stream, by its token or its place, and where others have its token by what it
	// is, too: a hold takes no change twice. "" has no name, and is taken each time.
	At   string
	Data []byte // as the stream encodes it, JSON text
	// Code and Message tell why the change is held; both are empty if an earlier one of its key is.
	Code    string
	Message string
}

// The limits of streams.
const (
	MaxTokenBytes  = 4 << 10
	MaxKeyBytes    = 1 << 10
	MaxHeldBytes   = 192 << 10 // of the changes of a hold, and of a Move
	MaxHeldChanges = 1_000     // of a hold
	MaxHolds       = 10_000    // of a stream, parked ones included
)
