package store

import (
	"context"
	"errors"
	"iter"
)

// ErrTaken reports a place that holds something else than the copy that is to be made there.
var ErrTaken = errors.New("there is something else")

// Receiver takes the copy of a cluster into a store that no node uses. Every method can be called again, also by a
// Receiver of another process, after an error and after a crash: what is there is passed over where it is what is
// given, and refused with ErrTaken where it is something else.
type Receiver interface {
	// Copied returns what is there of the cluster, to be read alone; nil = nothing. finished says that the cluster was
	// copied to its end before: nothing can be written then.
	Copied(ctx context.Context) (there Store, finished bool, err error)
	// Begin marks the store, before anything else is written: until Finish everybody else who opens it gets
	// ErrUnfinished. It ends the writing of whoever began before. It wraps ErrTaken where the store holds anything
	// but a copy of the same cluster.
	Begin(ctx context.Context) error
	// AddShard stores what is kept of a shard beside its entries, in the place of what was there, and removes entries
	// before the first one. parts yields those of a snapshot.
	AddShard(ctx context.Context, shard int, s ReceivedShard, parts PartsOf) error
	// AddEntries stores consecutive entries of a shard with their revisions, behind those that are there. A batch is
	// bounded by MaxReceivedEntries and MaxReceivedBytes.
	AddEntries(ctx context.Context, shard int, entries []Record) error
	// Finish makes a store of the copy, and removes the mark. No revision that it gives afterwards, to an entry or to
	// an ownership, is up to revision.
	Finish(ctx context.Context, revision int64, written Reads) error
}

// ReceivedShard holds what is kept of a shard beside its entries and the parts of its snapshots.
type ReceivedShard struct {
	First   uint64 // entry that the journal begins with; 0 = the first one
	Pointer SnapshotPointer
	Loss    Loss // with a revision of 0 for none
}

// PartsOf yields the parts of a snapshot in order, and ends with the first error.
type PartsOf func(s SnapshotInfo) iter.Seq2[[]byte, error]

const (
	// MaxReceivedEntries bounds the entries that a Receiver is given at a time.
	MaxReceivedEntries = 64
	// MaxReceivedBytes bounds their data, but of one entry alone.
	MaxReceivedBytes = 768 << 10
)
