package engine_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/store"
)

// mistaken is a store whose memberships show every node of a name as one that is draining.
type mistaken struct {
	store.Store
	drains string
	loads  atomic.Int64 // shards that were read, ever
}

func (s *mistaken) wrong(v store.Membership) store.Membership {
	nodes := map[string]store.NodeInfo{}
	for id, n := range v.Nodes {
		n.Draining = n.Draining || n.Name == s.drains
		nodes[id] = n
	}
	v.Nodes = nodes
	return v
}

func (s *mistaken) ReadMembers(ctx context.Context) (store.Membership, error) {
	v, err := s.Store.ReadMembers(ctx)
	return s.wrong(v), err
}

func (s *mistaken) WatchMembers(ctx context.Context) iter.Seq2[store.Membership, error] {
	return func(yield func(store.Membership, error) bool) {
		for v, err := range s.Store.WatchMembers(ctx) {
			if !yield(s.wrong(v), err) {
				return
			}
		}
	}
}

func (s *mistaken) Pointer(ctx context.Context, shard int) (store.SnapshotPointer, error) {
	s.loads.Add(1)
	return s.Store.Pointer(ctx, shard)
}

// A node asks for shards that their owners keep, since they see other members: it pauses, and does not read them all the time.
func TestHandOver_AShardThatItsOwnerKeepsIsAskedForAfterPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, true)
		s := &mistaken{drains: "c"}
		for _, name := range []string{"a", "b", "c"} {
			c.start(name, 0, func(c *cfg) {
				if name == "b" {
					s.Store, c.Store = c.Store, s
				}
			}).ready(t)
		}
		c.spread(3)
		time.Sleep(time.Minute)
		before := s.loads.Load()
		time.Sleep(time.Minute)
		const most = modelledShards * 60 / 5 // as often as the longest pause allows
		if asked := s.loads.Load() - before; asked == 0 || asked > most {
			t.Errorf("shards were read %d times in a minute, want some and at most %d", asked, most)
		}
	})
}
