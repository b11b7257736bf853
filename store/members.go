package store

import (
	"context"
	"iter"
)

// Membership is which nodes are present and which of them owns which shard, at one revision.
type Membership struct {
	Revision int64
	Nodes    map[string]NodeInfo // by id; a node key without a lease is no session's
	Owners   map[int]Owner       // by shard; a shard that never had an owner is missing
	Written  Reads               // what journals and snapshots may hold; every node that is present reads it, as far as its key can be read
}

// Owner is the value of an owner key.
type Owner struct {
	Node     string // session id; the session may have ended. "" = the key cannot be read
	Revision int64  // mod revision of the owner key: the epoch
}

// Members reads the membership.
type Members interface {
	// ReadMembers reads linearizably, all at one revision.
	ReadMembers(ctx context.Context) (Membership, error)
	// WatchMembers yields the membership at the time of the call and after every change, coalesced, until ctx ends or
	// the consumer stops. After any watch error it reads again, linearizably. Values are new maps each time. It yields
	// errors while etcd cannot be reached, and goes on.
	WatchMembers(ctx context.Context) iter.Seq2[Membership, error]
}

// Ownership is the right to append to the journal of a shard. Every write on behalf of the shard compares it.
type Ownership struct {
	Shard    int
	Revision int64 // of the owner key that names the session
	Session  Session
}

// Owners changes who owns a shard. Both methods resolve unknown outcomes themselves.
type Owners interface {
	// Take makes the session the owner of a shard. seen is the owner as it was read last; zero if the shard never
	// had one. An owner key that cannot be read is replaced if it still has its revision, which fences the session
	// that it named. It wraps ErrFenced if the owner key has changed, the node key of the old owner is there and
	// has a lease, or the session has ended.
	Take(ctx context.Context, s Session, shard int, seen Owner) (Ownership, error)
	// HandOver makes the session with the id target the owner of the shard. It wraps ErrFenced if the shard is not
	// o's any more, or if the target has no node key with a lease; in the latter case the shard stays o's.
	HandOver(ctx context.Context, o Ownership, target string) error
}
