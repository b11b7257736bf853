package works_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
)

func TestWork_NodesOfAnotherDefinitionLeaveItToOneThatHasTheRecorded(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(*shape){
		"they lack a partition":   func(s *shape) { s.partitions = 1 },
		"they stop at a failure":  func(s *shape) { s.rules = []work.Rule{{React: work.Stop, Times: 100}} },
		"they have a threshold":   func(s *shape) { s.modes, s.limit = []work.Mode{work.Full, work.Full}, 100 },
		"they ignore failures":    func(s *shape) { s.rules = []work.Rule{{React: work.Ignore}} },
		"they have other buckets": func(s *shape) { s.buckets = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upgraded(t, other)
		})
	}
}

// upgraded carries out a work with two failures, which began before two of the three nodes were there.
func upgraded(t *testing.T, other func(*shape)) {
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
			other(&of)
		}
		return of.define(node, to, func(ctx context.Context, n int64) error {
			select {
			case <-gate:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			switch {
			case n == 33:
				return errors.New("it is always so")
			case of.limit >= 0:
				return work.Permit(ctx, "changes")
			}
			return short(ctx, 10*time.Millisecond)
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
		if p.Done != s.items-1 || p.Failed != 1 {
			t.Errorf("%+v", p)
		}
	}
	if len(r.Partitions) != 2 {
		t.Errorf("%d partitions, want 2", len(r.Partitions))
	}
	w.workersEnded(steered)
}

func TestWork_WhoseDefinitionNoNodeHasAnyMoreGoesOnWithANewRunAfterAReset(t *testing.T) {
	t.Parallel()
	s := shape{id: "upgraded", items: 40, buckets: 8, workers: 3, limit: -1}
	to, gate := newTally(), make(chan struct{})
	define := func(node string) *work.Work[struct{}, int64] {
		of := s
		if node != "old" {
			of.rules = []work.Rule{{React: work.Stop, Times: 100}}
		}
		return of.define(node, to, func(ctx context.Context, _ int64) error {
			select {
			case <-gate:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}
	behaviors := func(node string) []task.Behavior { return []task.Behavior{define(node)} }
	w := &steer{shape: s, tally: to, of: define("new")}
	w.world = newWorld(t, testcluster.Options{}, 0, behaviors, "old")
	f := w.submit(define("old"), steered)
	w.await("all workers have buckets", func() bool {
		is, planned := w.progress(steered)
		return planned && len(is.Open) == 3
	})
	w.nodes = append(w.nodes, w.cluster.StartNodes(nil, behaviors, "new")...)
	w.nodes[0].Stop()
	close(gate)
	w.await("the new node has given the work back", func() bool {
		for ev, err := range w.client.Ledger().History(w.within(), steered) {
			w.must(err)
			if b, is := ev.Body.(*events.Released); is && b.Until > ev.At {
				return true
			}
		}
		return false
	})
	w.must(w.client.Operations().Suspend(w.within(), steered, "no node has its definition"))
	w.await("no worker runs", func() bool {
		is, _ := w.progress(steered)
		return len(is.Open) == 0 && is.Workers.Running == 0
	})
	if n := to.byNode()["new"]; n != 0 {
		t.Errorf("%d items were processed by another definition", n)
	}
	w.must(w.client.Operations().ResetWork(w.within(), steered, false))
	w.must(w.client.Operations().Resume(w.within(), steered))
	r, err := f.Wait(w.within())
	w.must(err)
	if p := r.Partitions[0]; p.Done != s.items || r.Run != 2 {
		t.Errorf("run %d: %+v", r.Run, p)
	}
	w.workersEnded(steered)
}
