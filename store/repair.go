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
	// Foreign yields a key, and no data, of each shard that keys are of and the cluster does not have.
	Foreign(ctx context.Context) iter.Seq2[StoredKey, error]
	// Leaseless yields the node keys without a lease, which are no session's.
	Leaseless(ctx context.Context) iter.Seq2[StoredKey, error]
	// Remove removes the key unless it was written since; that it is gone is no error.
	Remove(ctx context.Context, k StoredKey) error
}
