package store

import (
	"context"
	"iter"
)

// Head names the entry after which a writer appends: the last one that it has folded. Both fields are 0 before the
// first entry.
type Head struct {
	Number   uint64
	Revision int64 // etcd revision of its write
}

// Record is a stored entry.
type Record struct {
	Head
	Data []byte // immutable, owned by the receiver
}

// Journal appends to and reads the journals of the shards. A read that the store does not answer in time fails with
// ErrUnavailable; one whose ctx has ended fails with the error of ctx.
type Journal interface {
	// Append writes entry after.Number+1 of the shard, or nothing. It resolves unknown outcomes itself, by sending
	// the identical transaction until the answer is definite, and returns the revision of the entry, or an error
	// that wraps ErrFenced, ErrMoved, ErrAlien or ErrRefused; any other error means that ctx ended while the
	// outcome was unknown, and the entry may still appear later. The entry's bytes must never be changed.
	Append(ctx context.Context, o Ownership, after Head, entry []byte) (int64, error)
	// Read yields the entries from number from up to the last one at the time of the call, in order and linearizably,
	// in bounded pages. A missing entry yields ErrTrimmed. It ends with the first error.
	Read(ctx context.Context, shard int, from uint64) iter.Seq2[Record, error]
	// Backward yields the entries from number from down to the first one, newest first and linearizably, in bounded
	// pages. A missing entry, also one that was never written, yields ErrTrimmed. It ends with the first error.
	Backward(ctx context.Context, shard int, from uint64) iter.Seq2[Record, error]
	// Entry reads one entry linearizably; ErrTrimmed when it is gone, or was never written.
	Entry(ctx context.Context, shard int, number uint64) (Record, error)
	// Follow is Read, and then yields every later entry until ctx ends. It survives lost connections.
	Follow(ctx context.Context, shard int, from uint64) iter.Seq2[Record, error]
}
