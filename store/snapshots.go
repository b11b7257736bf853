package store

import (
	"context"
	"iter"
	"slices"

	"taskledger/events"
)

// SnapshotInfo names a stored state of a shard: the fold of its journal up to Entry, taken by the owner of Epoch.
type SnapshotInfo struct {
	Entry uint64      `json:"entry"`
	Epoch int64       `json:"epoch"` // etcd revision of the ownership that it was taken under
	Parts int         `json:"parts"`
	Bytes int64       `json:"bytes"` // of all parts
	Hash  events.Hash `json:"hash"`  // SHA-256 of the SHA-256 sums of the parts, in order
}

// SnapshotPointer names the snapshots of a shard that are kept, newest first, at most two.
type SnapshotPointer struct {
	Revision int64 // mod revision of the pointer; 0 = no snapshot was ever taken
	Kept     []SnapshotInfo
}

// Without returns the pointer less some of its snapshots.
func (p SnapshotPointer) Without(some []SnapshotInfo) SnapshotPointer {
	p.Kept = slices.DeleteFunc(slices.Clone(p.Kept), func(s SnapshotInfo) bool { return slices.Contains(some, s) })
	return p
}

// Snapshots keeps two states of each shard. Its writes are fenced by the ownership and resolve unknown outcomes
// themselves.
type Snapshots interface {
	// PutPart stores part number part of the snapshot of an entry; parts are put in order, from 0. Only Publish
	// makes them count. The bytes must never be changed. It wraps ErrFenced, ErrRefused, also when this ownership
	// stored the part with other bytes, or, when ctx ended while the store was full, ErrFull.
	PutPart(ctx context.Context, o Ownership, entry uint64, part int, data []byte) error
	// Publish makes s the newest snapshot and the newest one of seen the older one, and removes the parts of all
	// others. It wraps ErrFenced if the ownership is gone or the pointer is not the one seen, and ErrRefused if s
	// is not newer than the newest one of seen, is not of this ownership, or its parts were removed by another
	// Publish. A caller may leave a damaged snapshot out of seen.
	Publish(ctx context.Context, o Ownership, seen SnapshotPointer, s SnapshotInfo) (SnapshotPointer, error)
	// Pointer reads the pointer linearizably. It wraps events.ErrDamaged, and returns the revision alone, when its
	// value is corrupt.
	Pointer(ctx context.Context, shard int) (SnapshotPointer, error)
	// Parts yields the parts of a snapshot in order, without checking them. It ends with ErrTrimmed at a missing part.
	Parts(ctx context.Context, shard int, s SnapshotInfo) iter.Seq2[[]byte, error]
}

// Trimmer removes entries that snapshots cover.
type Trimmer interface {
	// First returns the number of the first entry that the journal holds; 0 = none.
	First(ctx context.Context, shard int) (uint64, error)
	// Trim removes the entries from first up to, but not, until, in pieces, each fenced by the ownership and
	// compared with the pointer p. It wraps ErrRefused unless p keeps two snapshots of which the older covers
	// until, or when the journal holds an entry before first, and ErrFenced when the ownership is gone or the
	// pointer has changed. What an error leaves is trimmed by the next call.
	Trim(ctx context.Context, o Ownership, p SnapshotPointer, first, until uint64) error
}
