package streams_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/task"
	"taskledger/work"
)

// busyOnce has the changes of some places fail when they are processed first.
type busyOnce struct {
	mu   sync.Mutex
	seen map[uint64]bool
}

func (b *busyOnce) fails(place uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := place%37 == 0 && !b.seen[place]
	b.seen[place] = true
	return first
}

// Workers are killed, NATS is restarted and the consumer is deleted while changes are retried later, and one is poison.
func TestStream_PushedWithHoldsOutlivesKillsOfEverything(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	s := many(testkit.Times(1_500, 50_000), testkit.Times(99, 999))
	busy := &busyOnce{seen: map[uint64]bool{}}
	policy := task.Policy{Backoff: task.Backoff{Base: 50 * time.Millisecond, Max: 200 * time.Millisecond}}
	w := newWorld(t, s, 0, policy, func(w *world, node string, s *stream) {
		s.Threads, s.Rules = 8, []work.Rule{{Code: "busy", React: work.RetryLater}}
		w.receive(node, s)
		s.Process = func(ctx context.Context, c work.Change[change]) error {
			if err := short(ctx, pace()); err != nil {
				return err
			}
			if busy.fails(c.Value.Place) {
				return behaviors.Code("busy", errors.New("not now"), nil)
			}
			a, _ := behaviors.Attempt(ctx)
			return w.target.apply(node, a.Token.Ref, c.Value)
		}
	})
	js := w.push()
	_, err := js.Publish(w.within(), "changes", []byte("no JSON"))
	w.must(err)
	w.submit()
	n := len(s.all)
	w.awaitDone(n / 5)
	w.crash(w.target.node())
	w.awaitDone(2 * n / 5)
	w.must(js.DeleteConsumer(w.within(), "CHANGES", "follow"))
	w.crash(w.target.node())
	w.awaitDone(3 * n / 5)
	w.cluster.NATS.Stop()
	w.cluster.NATS.Start()
	w.awaitDone(4 * n / 5)
	w.crash(w.target.node())
	w.awaitAcknowledged(js)
	w.await("nothing is retried any more, and the poison is parked", func() bool {
		is, err := w.client.Operations().WorkLinear(w.within(), followed)
		return err == nil && is.Stream != nil && is.Stream.Holds.Retried == 0 && is.Stream.Holds.Parked == 1
	})
	w.target.wantAll(t, s)
	is, err := w.client.Operations().WorkLinear(w.within(), followed)
	w.must(err)
	if is.Stream.Token == "" || is.Stream.Holds.Failed != 0 || is.Stream.Holds.Changes != 1 {
		t.Errorf("the stream tells %+v", is.Stream)
	}
	done, again := w.target.count()
	t.Logf("%d changes, %d processed again", done, again)
	if again > n/2 { // the consumer that was made again goes on behind what was acknowledged
		t.Errorf("%d of %d changes were processed again", again, n)
	}
	w.must(w.client.Operations().Cancel(w.within(), followed, "enough"))
	w.awaitStatus(followed, task.Failure)
}

func TestStream_AThresholdThatTripsInMidStreamLosesNothingAcrossAKill(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	const limit = 300
	s := many(800, 50)
	w := newWorld(t, s, 0, task.Policy{}, func(w *world, node string, s *stream) {
		s.Threads, s.Thresholds = 4, []work.Threshold{{Counter: "changes", Limit: limit}}
		w.fetch(s)
		s.Process = func(ctx context.Context, c work.Change[change]) error {
			if err := work.Permit(ctx, "changes"); err != nil {
				return err
			}
			a, _ := behaviors.Attempt(ctx)
			return errors.Join(short(ctx, 5*time.Millisecond), w.target.apply(node, a.Token.Ref, c.Value))
		}
	})
	o := w.client.Operations()
	w.submit()
	for i := 1; ; i++ {
		if i == 2 {
			w.awaitDone(limit + limit/3)
			w.crash(w.target.node())
		}
		var is task.Task
		w.await("the stream has ended", func() bool {
			is, _ = w.show(followed)
			return is.Status == task.Success || is.Status == task.Failure
		})
		w.judge()
		done, _ := w.target.count()
		if done > i*limit {
			t.Fatalf("%d changes are applied with %d times %d permits", done, i, limit)
		}
		if is.Status == task.Success {
			break
		}
		if is.Error == nil || is.Error.Code != events.CodeThreshold || done < i*(limit-100) { // some were in flight
			t.Fatalf("behind %d changes it has ended with %+v", done, is.Error)
		}
		w.must(o.ResetWork(w.within(), followed, true))
		_, err := o.Retry(w.within(), followed)
		w.must(err)
		w.await("it runs again", func() bool {
			is, _ := w.show(followed)
			return is.Status != task.Failure
		})
	}
	w.target.wantAll(t, s)
	done, again := w.target.count()
	t.Logf("%d changes, %d processed again", done, again)
	if again > 400 { // a second of changes that the worker which was killed had not told, and some in flight
		t.Errorf("%d changes were processed again", again)
	}
}
