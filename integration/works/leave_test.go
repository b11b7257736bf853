package works_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// A node that stops has an hour for what it runs, and takes the bucket under way for the last one all the same.
func TestWork_ANodeThatDrainsTakesNoOtherBucket(t *testing.T) {
	t.Parallel()
	s := shape{
		id:      "leave",
		items:   12,
		buckets: 12,
		workers: 2,
		limit:   -1,
	}
	gates := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
	var open sync.Once
	defer open.Do(func() { close(gates["b"]) })
	tally := newTally()
	w := &world{T: t, cluster: testcluster.New(t, testcluster.Options{})}
	configure := func(cfg *engine.NodeConfig) { cfg.Slots, cfg.Grace = 1, time.Hour }
	w.nodes = w.cluster.StartNodes(configure, func(node string) []task.Behavior {
		return []task.Behavior{s.define(node, tally, func(ctx context.Context, _ int64) error {
			select {
			case <-gates[node]:
			case <-ctx.Done():
			}
			return ctx.Err()
		})}
	}, "a", "b")
	w.client = w.cluster.StartClient("client", nil)
	of := s.define("client", tally, nil)
	f := w.submit(of, steered)
	w.await("each node has a bucket", func() bool {
		is, planned := w.progress(steered)
		return planned && len(is.Open) == 2 && is.Open[0].Node != is.Open[1].Node
	})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.nodes[0].Stop()
	}()
	w.await("the node drains", func() bool { return w.nodes[0].Vitals().Draining })
	close(gates["a"])
	select {
	case <-stopped:
	case <-w.within().Done():
		t.Error("the node does not stop")
	}
	if n := tally.byNode()["a"]; n != 1 {
		t.Errorf("%d items were processed by the node that drains, want that of its bucket under way", n)
	}
	open.Do(func() { close(gates["b"]) })
	_, err := f.Wait(w.within())
	w.must(err)
	w.doneOnce(steered, s.buckets)
}
