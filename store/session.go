package store

import (
	"context"
	"time"
)

// Session is the presence of a node: a lease, and the node key that is bound to it. An ID is never used again.
type Session struct {
	ID       string // as SessionID makes it; NodeName tells the name in it
	Lease    int64
	Revision int64 // create revision of the node key
}

// NodeInfo describes a node: the value of its node key.
type NodeInfo struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Behaviors []string `json:"behaviors"` // that it runs
	Types     string   `json:"types"`     // a digest of the parameter and result types of each
	Slots     int      `json:"slots"`
	// Limits bounds by behavior the attempts that it makes at once, for behaviors that Slots alone does not bound;
	// 0: none.
	Limits   map[string]int `json:"limits,omitempty"`
	Owner    bool           `json:"owner"` // takes shards
	Draining bool           `json:"draining"`
	Reads    Reads          `json:"reads"`     // what its program reads; zero if the key does not say so
	Joined   int64          `json:"joined_ms"` // its wall clock when it joined, milliseconds
	Load     []byte         `json:"-"`         // its last load message, kept here while it has no bus
	Revision int64          `json:"-"`         // create revision of the node key
	Modified int64          `json:"-"`         // mod revision of the node key
	// ClockAhead counts the milliseconds by which its wall clock is ahead of those of the other nodes, or,
	// negative, behind; 0 = by a second at most, or not known. It is not stored: engine.Operations.Nodes computes
	// it from Load.
	ClockAhead int64 `json:"clock_ahead_ms,omitempty"`
}

// Sessions begins, renews and ends sessions.
type Sessions interface {
	// Join grants a lease of at least ttl and creates the node key under a new id, which SessionID makes of
	// info.Name. It wraps ErrOutdated, and creates none, when info.Reads lacks something of Membership.Written.
	Join(ctx context.Context, info NodeInfo, ttl time.Duration) (Session, error)
	// Renew extends the lease by one request. It wraps ErrSessionEnded when the lease is gone; any other error leaves
	// the outcome unknown. ctx bounds the one request; the next call goes to the next etcd member.
	Renew(ctx context.Context, s Session) error
	// Update replaces the value of the node key. It calls info for the value after it has read the key, and again
	// whenever the key has changed meanwhile, so that the last of several concurrent updates writes the latest
	// value. It also calls info for every copy of a request that it sends again, so that no value is written much
	// later than it was made. It wraps ErrSessionEnded if the key is gone or has lost its lease.
	Update(ctx context.Context, s Session, info func() NodeInfo) error
	// Leave revokes the lease, which deletes the node key. A session that has ended is no error.
	Leave(ctx context.Context, s Session) error
	// Raise makes Membership.Written tell of need, too. It resolves unknown outcomes itself. A node that reads less
	// may have joined before: whoever is about to write what need tells of looks at the members after it.
	Raise(ctx context.Context, need Reads) error
}
