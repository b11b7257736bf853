package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

// givingAway counts the shards that a node hands over.
type givingAway struct {
	store.Store
	shards atomic.Int32
}

func (g *givingAway) HandOver(ctx context.Context, o store.Ownership, target string) error {
	g.shards.Add(1)
	return g.Store.HandOver(ctx, o, target)
}

// laterRelease is the store of a node whose program folds by rules that others do not have.
type laterRelease struct{ store.Store }

func (s laterRelease) Join(ctx context.Context, info store.NodeInfo, ttl time.Duration) (store.Session, error) {
	info.Reads.Rules++
	return s.Store.Join(ctx, info, ttl)
}

func (s laterRelease) Update(ctx context.Context, session store.Session, info func() store.NodeInfo) error {
	return s.Store.Update(ctx, session, func() store.NodeInfo {
		later := info()
		later.Reads.Rules++
		return later
	})
}

// What the node of a later release writes could not be read as long as the node that leaves is present.
func TestDrain_LeavesItsShardsToTheNodeOfALaterReleaseAndHandsThemNotOver(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 4})
	given := &givingAway{}
	old := c.StartNode("old", func(c *engine.NodeConfig) { given.Store, c.Store = c.Store, given })
	c.StartNode("later", func(c *engine.NodeConfig) { c.Store = laterRelease{c.Store} })
	old.Stop()
	if n := given.shards.Load(); n != 0 {
		t.Errorf("%d shards were handed over", n)
	}
	c.AwaitSpread()
}
