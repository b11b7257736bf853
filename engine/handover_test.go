package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/store"
)

// The word that a shard was handed over never arrives. The owner key says so, too, and the shard must not be without an
// owner for as long as the answer is waited for, which is a TTL.
func TestHandOver_LostAnswerLeavesNoShardUnserved(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{TTL: time.Minute, Shards: 2})
	var losing atomic.Bool
	c.StartNode("a", with(noSlots, (&wire{answered: only(&losing, laneQuery, drop)}).through, func(cfg *cfg) {
		cfg.Store = &handingStore{cfg.Store, &losing}
	}))
	c.StartNode("b", noSlots)
	c.AwaitSpread()
	if !losing.Swap(false) {
		t.Error("the shard was not handed over")
	}
}

// handingStore notes when a shard has been handed over.
type handingStore struct {
	store.Store
	done *atomic.Bool
}

func (s *handingStore) HandOver(ctx context.Context, o store.Ownership, target string) error {
	err := s.Store.HandOver(ctx, o, target)
	if err == nil {
		s.done.Store(true)
	}
	return err
}
