package works_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
)

const steered events.TaskID = "tenant/steered"

// steer is a world with one work, of which each item does what the test says.
type steer struct {
	*world
	shape shape
	tally *tally
	of    *work.Work[struct{}, int64] // as the client has it
}

func newSteer(t *testing.T, s shape, process func(ctx context.Context, n int64) error, nodes ...string) *steer {
	t.Helper()
	w := &steer{shape: s, tally: newTally()}
	w.of = s.define("client", w.tally, process)
	w.world = newWorld(t, testcluster.Options{}, 0, func(node string) []task.Behavior {
		return []task.Behavior{s.define(node, w.tally, process)}
	}, nodes...)
	return w
}

// ends waits until the task has ended with a status, and returns it.
func (w *steer) ends(status task.Status) (t task.Task) {
	w.Helper()
	w.await("the work ends with "+string(status), func() bool {
		t = w.show(steered)
		return t.Status == status && t.Final()
	})
	return t
}

func TestWork_SuspendedTwiceInTheMiddleLosesNoItem(t *testing.T) {
	t.Parallel()
	s := shape{
		id:      "suspended",
		items:   600,
		buckets: 20,
		workers: 5,
		threads: 2,
		limit:   -1,
	}
	w := newSteer(t, s, func(ctx context.Context, _ int64) error { return short(ctx, 5*time.Millisecond) }, "a", "b", "c")
	f := w.submit(w.of, steered)
	for _, least := range []uint64{60, 300} {
		w.await("some items are committed", func() bool {
			is, planned := w.progress(steered)
			return planned && len(is.Partitions) > 0 && is.Items.Done >= least && len(is.Open) > 1
		})
		w.must(w.client.Operations().Suspend(w.within(), steered, "lunch"))
		w.await("no bucket is open", func() bool {
			is, _ := w.progress(steered)
			return len(is.Open) == 0 && is.Workers.Running == 0
		})
		before, _ := w.progress(steered)
		began := w.tally.total()
		if before.Items.Done%30 != 0 || before.Items.Done == uint64(s.items) {
			t.Errorf("%d items are committed of buckets of 30, want less than all", before.Items.Done)
		}
		w.must(short(w.within(), 200*time.Millisecond))
		if after, _ := w.progress(steered); after.Items.Done != before.Items.Done || w.tally.total() != began {
			t.Errorf("%d items while suspended, %d before", after.Items.Done, before.Items.Done)
		}
		w.must(w.client.Operations().Resume(w.within(), steered))
	}
	r, err := f.Wait(w.within())
	w.must(err)
	if p := r.Partitions[0]; p.Done != s.items || p.Failed+p.Skipped != 0 {
		t.Errorf("%+v", p)
	}
	if len(w.tally.times) != int(s.items) {
		t.Errorf("%d items were processed, want %d", len(w.tally.times), s.items)
	}
	w.doneOnce(steered, s.buckets)
	w.workersEnded(steered)
}

// untilEnd is an item that ends only when its attempt has to.
func untilEnd(ctx context.Context, _ int64) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestWork_CancelEndsItsWorkers(t *testing.T) {
	t.Parallel()
	s := shape{id: "cancelled", items: 40, buckets: 8, workers: 4, limit: -1}
	w := newSteer(t, s, untilEnd, "a", "b")
	f := w.submit(w.of, steered)
	w.await("all workers have buckets", func() bool {
		is, planned := w.progress(steered)
		return planned && len(is.Open) == 4
	})
	w.must(w.client.Operations().Cancel(w.within(), steered, "enough"))
	if _, err := f.Wait(w.within()); !errors.Is(err, task.ErrCancelled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
	w.workersEnded(steered)
	if is, _ := w.progress(steered); len(is.Open) != 0 {
		t.Errorf("open: %+v", is.Open)
	}
}

func TestWork_DeletedWhileItWaitsItsWorkersEnd(t *testing.T) {
	t.Parallel()
	s := shape{id: "deleted", items: 40, buckets: 8, workers: 4, limit: -1}
	w := newSteer(t, s, untilEnd, "a", "b")
	w.submit(w.of, steered).Close()
	w.await("all workers have buckets", func() bool {
		is, planned := w.progress(steered)
		return planned && len(is.Open) == 4
	})
	w.must(w.client.Operations().Cancel(w.within(), steered, "enough"))
	w.ends(task.Failure)
	w.must(w.client.Operations().Delete(w.within(), steered))
	if _, planned := w.progress(steered); planned {
		t.Error("the work is still there")
	}
	w.workersEnded(steered)
}

func TestWork_RetryOfAFailureGoesOnAndARunAfterASuccessBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, workers := range map[string]int64{"alone": 1, "with others": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var broken atomic.Bool
			broken.Store(true)
			s := shape{
				id:      "broken",
				items:   100,
				buckets: 10,
				workers: workers,
				limit:   -1,
				rules:   []work.Rule{{Code: "disk", React: work.Stop}},
			}
			w := newSteer(t, s, func(_ context.Context, n int64) error {
				if n == 55 && broken.Load() {
					return behaviors.Code("disk", errors.New("no space"), nil)
				}
				return nil
			}, "a", "b")
			_, err := w.submit(w.of, steered).Wait(w.within())
			failed, is := errors.AsType[*task.Error](err)
			if !is || failed.Code != events.CodeStopped {
				t.Fatalf("%v, want the code %s", err, events.CodeStopped)
			}
			w.workersEnded(steered)
			before, _ := w.progress(steered)
			if before.Items.Done == 0 || len(before.Open) != 0 {
				t.Errorf("%+v", before)
			}
			broken.Store(false)
			_, err = w.client.Operations().Retry(w.within(), steered)
			w.must(err)
			w.ends(task.Success)
			w.doneOnce(steered, s.buckets)
			if is, _ := w.progress(steered); is.Items.Done != 100 || is.Run != before.Run {
				t.Errorf("run %d with %d items, want run %d with 100", is.Run, is.Items.Done, before.Run)
			}
			_, err = w.client.Operations().Retry(w.within(), steered)
			w.must(err)
			w.await("it runs again", func() bool {
				is, _ := w.progress(steered)
				return is.Run > before.Run && is.Items.Done == 100 && w.show(steered).Status == task.Success
			})
			w.workersEnded(steered)
		})
	}
}

func TestWork_ResetForgetsAndRerunTakesFailedBucketsAlone(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	s := shape{id: "partly", items: 100, buckets: 10, workers: 3, limit: -1}
	w := newSteer(t, s, func(_ context.Context, n int64) error {
		if (n == 12 || n == 77) && broken.Load() {
			return errors.New("not today")
		}
		return nil
	}, "a", "b")
	r, err := w.submit(w.of, steered).Wait(w.within())
	w.must(err)
	if p := r.Partitions[0]; p.Done != 98 || p.Failed != 2 {
		t.Errorf("%+v", p)
	}
	w.workersEnded(steered)
	broken.Store(false)
	total := w.tally.total()
	w.must(w.client.Operations().RerunWork(w.within(), steered))
	w.await("the failed buckets have run again", func() bool {
		is, _ := w.progress(steered)
		return is.FailedOnly && is.Items.Done == 20 && w.show(steered).Status == task.Success
	})
	if n := w.tally.total() - total; n != 20 {
		t.Errorf("%d items were processed again, want 20", n)
	}
	w.workersEnded(steered)
	w.must(w.client.Operations().ResetWork(w.within(), steered, false))
	if is, _ := w.progress(steered); is.Items.Done != 0 {
		t.Errorf("%+v", is)
	}
	_, err = w.client.Operations().Retry(w.within(), steered)
	w.must(err)
	w.await("it has run from the beginning", func() bool {
		is, _ := w.progress(steered)
		return !is.FailedOnly && is.Items.Done == 100 && w.show(steered).Status == task.Success
	})
	w.workersEnded(steered)
}
