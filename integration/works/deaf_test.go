package works_test

import (
	"context"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// With one attempt allowed and one loss a suspend that counted as either would end the work.
func TestWork_AFunctionThatIgnoresASuspendCostsNoAttempt(t *testing.T) {
	t.Parallel()
	s := shape{
		id:      "deaf",
		items:   4,
		buckets: 4,
		workers: 2,
		limit:   -1,
		policy:  task.Policy{MaxAttempts: 1, MaxLost: 1},
	}
	release := make(chan struct{})
	w := newSteer(t, s, func(context.Context, int64) error { <-release; return nil }, "a", "b")
	f := w.submit(w.of, steered)
	open := func(n int) func() bool {
		return func() bool {
			is, planned := w.progress(steered)
			return planned && len(is.Open) == n
		}
	}
	w.await("two buckets are open", open(2))
	began := time.Now()
	w.must(w.client.Operations().Suspend(w.within(), steered, ""))
	w.await("the buckets are given back although their functions run", open(0))
	if after := time.Since(began); after < 9*time.Second {
		t.Errorf("given back after %s", after)
	}
	for _, b := range w.moves(steered) {
		if b.Returned != 0 && b.Cause != events.ReturnedGivenUp {
			t.Errorf("bucket %d was returned with the cause %v", b.Returned, b.Cause)
		}
	}
	if is := w.show(steered); is.Status == task.Failure || is.Failures != 0 {
		t.Errorf("it is %s after %d failures", is.Status, is.Failures)
	}
	close(release)
	w.must(w.client.Operations().Resume(w.within(), steered))
	_, err := f.Wait(w.within())
	w.must(err)
	w.doneOnce(steered, s.buckets)
}

// Without a bus the hint that ends the attempt is lost: the reconciliation tells the node.
func TestWork_ASuspendWhoseHintIsLostEndsTheAttempt(t *testing.T) {
	t.Parallel()
	s := shape{id: "unheard", items: 4, limit: -1}
	of := s.define("client", newTally(), nil)
	began := make(chan struct{}, s.items)
	c := testcluster.New(t, testcluster.Options{NoNATS: true})
	c.StartNode("owns", func(cfg *engine.NodeConfig) { cfg.Slots = -1 })
	c.StartNode("runs", func(cfg *engine.NodeConfig) { cfg.Owner = new(bool) },
		s.define("runs", newTally(), func(ctx context.Context, _ int64) error {
			began <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		}))
	w := &world{T: t, cluster: c, client: c.StartClient("client", nil)}
	w.submit(of, steered)
	<-began
	w.must(w.client.Operations().Suspend(w.within(), steered, ""))
	w.await("the bucket is given back", func() bool {
		is, planned := w.progress(steered)
		return planned && len(is.Open) == 0
	})
	if is := w.show(steered); is.Status == task.Failure || is.Failures != 0 {
		t.Errorf("it is %s after %d failures", is.Status, is.Failures)
	}
}
