package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"taskledger/internal/testcluster"
)

// The word that a shard was handed over never arrives. The owner key says so, too, and the shard must not be without an
// owner for as long as the answer is waited for, which is a TTL.
func TestHandOver_LostAnswerLeavesNoShardUnserved(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{TTL: time.Minute, Shards: 2})
	var losing atomic.Bool
	losing.Store(true)
	c.StartNode("a", with(noSlots, (&wire{answered: only(&losing, laneQuery, drop)}).through))
	c.StartNode("b", noSlots)
	c.AwaitSpread()
	losing.Store(false)
}
