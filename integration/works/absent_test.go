package works_test

import (
	"context"
	"testing"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
)

func TestWork_NodesThatLackAPartitionLeaveItToOneThatHasIt(t *testing.T) {
	t.Parallel()
	s := shape{
		id:         "upgraded",
		partitions: 2,
		items:      40,
		buckets:    20,
		workers:    3,
		limit:      -1,
		policy:     task.Policy{MaxAttempts: 2},
	}
	to, gate := newTally(), make(chan struct{})
	define := func(node string) *work.Work[struct{}, int64] {
		of := s
		if node == "a" || node == "b" {
			of.partitions = 1
		}
		return of.define(node, to, func(ctx context.Context, _ int64) error {
			select {
			case <-gate:
				return short(ctx, 10*time.Millisecond)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}
	behaviors := func(node string) []task.Behavior { return []task.Behavior{define(node)} }
	w := &steer{shape: s, tally: to, of: define("client")}
	w.world = newWorld(t, testcluster.Options{}, 0, behaviors, "c")
	f := w.submit(w.of, steered)
	w.await("all workers have buckets", func() bool {
		is, planned := w.progress(steered)
		return planned && len(is.Open) == 3
	})
	w.cluster.StartNodes(nil, behaviors, "a", "b")
	close(gate)
	r, err := f.Wait(w.within())
	w.must(err)
	for _, p := range r.Partitions {
		if p.Done != s.items {
			t.Errorf("%+v", p)
		}
	}
	if len(r.Partitions) != 2 {
		t.Errorf("%d partitions, want 2", len(r.Partitions))
	}
	w.workersEnded(steered)
}
