package engine

import (
	"fmt"
	"sync/atomic"

	"taskledger/engine/internal/command"
	"taskledger/store"
)

const (
	// presumedQuota is etcd's default, which counts until the quota of the store is known.
	presumedQuota = 2 << 30
	// liveShare limits the live tasks of a shard to one part in so many of its share of the quota: two snapshots of
	// them are stored.
	liveShare = 4
)

// admission refuses new tasks while the store is almost full.
type admission struct {
	usage   atomic.Pointer[store.Usage]
	refusal atomic.Pointer[string] // why new tasks are refused; "" = they are accepted
	cause   refusalCause           // of refusal; only the goroutine that weighs reads it
}

// refusalCause distinguishes refusals whose texts may differ.
type refusalCause uint8

const (
	noRefusal   refusalCause = iota
	storeFull                // the store takes no writes
	storeFilled              // too many bytes of the store are in use
)

// begin accepts tasks until the store was measured.
func (a *admission) begin() {
	a.usage.Store(&store.Usage{Quota: presumedQuota})
	a.refusal.Store(new(string))
}

// weigh takes a measurement of the store, and reports whether the cause of the refusal has changed. Bytes in use
// count: the file never shrinks by itself. advice says how to make room.
func (a *admission) weigh(u store.Usage, advice func() string) (changed bool) {
	a.usage.Store(&u)
	cause, why := noRefusal, ""
	switch {
	case u.Full:
		cause, why = storeFull, fmt.Sprintf("%s (%d of %d bytes)", command.StoreFull, u.Size, u.Quota)
	case filled(&u):
		cause, why = storeFilled, fmt.Sprintf("the store holds %d of %d bytes: %s", u.InUse, u.Quota, advice())
	}
	a.refusal.Store(&why)
	changed = a.cause != cause
	a.cause = cause
	return changed
}

// filled reports whether so much of a store is in use that new tasks are refused.
func filled(u *store.Usage) bool { return u.InUse >= u.Quota/5*4 }

// liveLimit returns how many bytes the live tasks of a shard may take.
func (a *admission) liveLimit(shards int) int64 {
	return a.usage.Load().Quota / int64(liveShare*shards)
}
