package store

import (
	"context"
	"iter"
)

// StoredKey is a key as it is stored, whatever it holds.
type StoredKey struct {
	Key      string
	Entry    uint64 // of a journal; 0 = no entry can have that key
	Revision int64  // mod revision
	Replaced bool   // it was written more than once since it is there
	Data     []byte
}

// Repairer finds what does not belong where it is, and removes it.
type Repairer interface {
	// Behind yields what the journal of a shard holds behind the key of an entry, in the order of the keys.
	Behind(ctx context.Context, shard int, entry uint64) iter.Seq2[StoredKey, error]
	// Foreign yields keys of shards that the cluster does not have, without their data: of each such shard one of
	// every kind that is there.
	Foreign(ctx context.Context) iter.Seq2[StoredKey, error]
	// Leaseless yields the node keys without a lease, which are no session's, in the order of the keys.
	Leaseless(ctx context.Context) iter.Seq2[StoredKey, error]
	// Remove removes the key. That it is gone is no error, that it was written since its Revision is one. It wraps
	// ErrRefused for what is no key of the cluster, and without a revision.
	Remove(ctx context.Context, k StoredKey) error
}
