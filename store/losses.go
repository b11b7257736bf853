package store

import (
	"context"

	"taskledger/events"
)

// Loss says that an operator gave up what came after an entry of a journal. It waits in the store for the next
// owner of the shard, who records it.
type Loss struct {
	Shard    int
	Entry    uint64      // the last one that is left; 0 = none
	Hash     events.Hash // its chain hash
	Reason   string      // for people
	Revision int64       // of its key
}

// Losses keeps what operators gave up until owners have recorded it.
type Losses interface {
	// GiveUp leaves a loss to the next owner of its shard, in the place of what was left before.
	GiveUp(ctx context.Context, l Loss) error
	// Loss reads what is left to the next owner linearizably; its Revision is 0 where there is nothing. What is
	// corrupt wraps events.ErrDamaged, and is returned with shard and revision alone.
	Loss(ctx context.Context, shard int) (Loss, error)
	// Recover is Journal.Append of the entry that records a loss, which it removes with the same transaction. Where
	// the pointer has a revision, it takes the place of the one in the store, which must be of that revision: what
	// it keeps no more ends behind the journal. ErrRefused is also wrapped when the loss or the pointer has
	// changed.
	Recover(ctx context.Context, o Ownership, after Head, entry []byte, l Loss, left SnapshotPointer) (int64, error)
	// Forget removes a loss without effect. That it is gone, or was left anew, is no error.
	Forget(ctx context.Context, l Loss) error
}
