package works_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
)

// creating returns an item of a work of 60 creations: what creates asks for a permit first, and applies nothing where
// the mode is to simulate.
func creating(to *tally) func(ctx context.Context, n int64) error {
	return func(ctx context.Context, n int64) error {
		if err := work.Permit(ctx, "changes"); err != nil {
			return err
		}
		if info, _ := work.Run(ctx); info.Mode == work.Full {
			to.apply(n)
		}
		return nil
	}
}

func TestThreshold_ThatTripsLeavesNoMoreThanItsLimitApplied(t *testing.T) {
	t.Parallel()
	const limit = 29
	modes := map[string][]work.Mode{
		"simulate alone":          {work.Simulate},
		"simulate, then full":     {work.Simulate, work.Full},
		"full alone":              {work.Full},
		"full of exactly as many": {work.Full},
	}
	for name, all := range modes {
		for _, workers := range []int64{1, 9} {
			for _, nodes := range [][]string{{"a"}, {"a", "b", "c"}} {
				s := shape{
					id:         "creations",
					partitions: len(all),
					items:      60,
					buckets:    12,
					workers:    workers,
					threads:    2,
					modes:      all,
					limit:      limit,
				}
				trips, applied := true, 0
				switch name {
				case "full alone":
					applied = limit
				case "full of exactly as many":
					s.limit, trips, applied = 60, false, 60
				}
				t.Run(fmt.Sprintf("%s, %d workers on %d nodes", name, workers, len(nodes)), func(t *testing.T) {
					t.Parallel()
					tripsAt(t, s, trips, applied, nodes)
				})
			}
		}
	}
}

func tripsAt(t *testing.T, s shape, trips bool, applied int, nodes []string) {
	to := newTally()
	of := s.define("client", to, creating(to))
	w := &steer{shape: s, tally: to, of: of}
	w.world = newWorld(t, testcluster.Options{}, 0, func(node string) []task.Behavior {
		return []task.Behavior{s.define(node, to, creating(to))}
	}, nodes...)
	_, err := w.submit(of, steered).Wait(w.within())
	if !trips {
		if w.must(err); len(to.appliedTo()) != applied {
			t.Errorf("applied to %d items, want %d", len(to.appliedTo()), applied)
		}
		w.workersEnded(steered)
		return
	}
	failed, is := errors.AsType[*task.Error](err)
	if !is || failed.Code != events.CodeThreshold || failed.Properties["counter"] != "changes" {
		t.Fatalf("%v, want the code %s", err, events.CodeThreshold)
	}
	w.workersEnded(steered)
	w.await("all that was permitted is applied", func() bool { return len(to.appliedTo()) >= applied })
	if n := len(to.appliedTo()); n != applied {
		t.Errorf("applied to %d items, want %d", n, applied)
	}
	for range 2 { // resumed without a reset it trips again
		w.repeatsWhatIsPermitted(func() {
			_, err := w.client.Operations().Retry(w.within(), steered)
			w.must(err)
			w.ends(task.Failure)
			w.workersEnded(steered)
		})
	}
	for range 60 / int(s.limit) { // each reset lets as many again pass
		w.must(w.client.Operations().ResetWork(w.within(), steered, true))
		_, err := w.client.Operations().Retry(w.within(), steered)
		w.must(err)
		w.await("it has ended", func() bool { t := w.show(steered); return t.Final() })
		w.workersEnded(steered)
	}
	if last := len(to.appliedTo()); s.modes[0] == work.Full && last != int(s.items) {
		t.Errorf("applied to %d items after resets, want all", last)
	}
}

// repeatsWhatIsPermitted reports an error if, while a work is retried that trips again, something is applied to an item
// that it was not applied to before, or to one of a bucket that was done. Others of open buckets are processed again.
func (w *steer) repeatsWhatIsPermitted(retry func()) {
	w.Helper()
	done, before := w.done(steered), w.tally.applications()
	retry()
	for n, times := range w.tally.applications() {
		bucket := uint64(n/(w.shape.items/w.shape.buckets)) + 1
		switch {
		case before[n] == 0:
			w.Errorf("a retry applies to item %d, which has no permit", n)
		case times != before[n] && done[bucket]:
			w.Errorf("a retry applies to item %d of bucket %d, which is done", n, bucket)
		}
	}
}

// The operation of item 0 heeds its context, which the trip ends. The only bucket has more than twice the limit.
func TestThreshold_WhatATripCutsOffPassesUncountedWhenItsBucketRunsAgain(t *testing.T) {
	t.Parallel()
	s := shape{
		id:      "cut-off",
		items:   20,
		threads: 2,
		modes:   []work.Mode{work.Full},
		limit:   9,
	}
	var begun, applied sync.Once
	var retried atomic.Bool
	first, repeated := make(chan struct{}), make(chan struct{}) // item 0 has its permit, is applied
	to := newTally()
	w := newSteer(t, s, func(ctx context.Context, n int64) error {
		cut, gate := false, first
		if retried.Load() {
			gate = repeated
		}
		if n == 0 {
			begun.Do(func() { cut = true })
		} else {
			select {
			case <-gate:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := work.Permit(ctx, "changes"); err != nil {
			return err
		}
		if cut {
			close(first)
			return untilEnd(ctx, n)
		}
		if to.apply(n); n == 0 {
			applied.Do(func() { close(repeated) })
		}
		return nil
	}, "a")
	passed := func(status task.Status, want int) {
		t.Helper()
		if is := w.ends(status); status == task.Failure && is.Error.Code != events.CodeThreshold {
			t.Errorf("%+v, want the code %s", is.Error, events.CodeThreshold)
		}
		w.await(fmt.Sprintf("%d items are applied", want), func() bool { return len(to.appliedTo()) >= want })
		if all := to.appliedTo(); len(all) != want {
			t.Errorf("applied to %v, want %d", all, want)
		}
	}
	retry := func() {
		_, err := w.client.Operations().Retry(w.within(), steered)
		w.must(err)
	}
	w.submit(w.of, steered).Close()
	passed(task.Failure, int(s.limit)-1)
	retried.Store(true)
	retry()
	passed(task.Failure, int(s.limit))
	w.must(w.client.Operations().ResetWork(w.within(), steered, true))
	retry()
	passed(task.Failure, 2*int(s.limit))
	w.must(w.client.Operations().ResetWork(w.within(), steered, true))
	retry()
	passed(task.Success, int(s.items))
}

func TestWork_AnIteratorThatFailsFailsItAfterAsManyAttemptsOfOneBucket(t *testing.T) {
	t.Parallel()
	for _, workers := range []int64{1, 4} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			t.Parallel()
			define := func(string) *work.Work[struct{}, int64] {
				return work.Define("unreadable", &work.Options{
					Policy: task.Policy{MaxAttempts: 3, Backoff: task.Backoff{Base: 1e6, Max: 1e6}},
				}, work.Partition[struct{}, int64]{
					Items: func(_ context.Context, _ struct{}, b work.Bucket) iter.Seq2[int64, error] {
						return func(yield func(int64, error) bool) {
							if b.Number == 4 {
								yield(0, errors.New("page 4 is torn out"))
								return
							}
							yield(b.From, nil)
						}
					},
					Process:      func(context.Context, int64) error { return nil },
					Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: 80, Buckets: 8},
					Workers:      workers,
				})
			}
			w := &steer{of: define("client")}
			w.world = newWorld(t, testcluster.Options{}, 0, func(node string) []task.Behavior {
				return []task.Behavior{define(node)}
			}, "a", "b")
			_, err := w.submit(w.of, steered).Wait(w.within())
			failed, is := errors.AsType[*task.Error](err)
			if !is || failed.Code != events.CodeItems || failed.Properties["bucket"] != "4" {
				t.Fatalf("%v, want the code %s of bucket 4", err, events.CodeItems)
			}
			w.workersEnded(steered)
			returned := 0
			for _, b := range w.moves(steered) {
				if b.Cause == events.ReturnedFailed {
					returned++
				}
			}
			if returned != 2 && returned != 3 { // where the third attempt is the task's own, it ends the run, which returns all
				t.Errorf("bucket 4 was returned %d times by attempts that failed, want 2 or 3", returned)
			}
		})
	}
}

func TestWork_RefusesSubmitsOfItsWorkersAndOfLongIDs(t *testing.T) {
	t.Parallel()
	s := shape{id: "guarded", items: 40, buckets: 8, workers: 3, limit: -1}
	w := newSteer(t, s, untilEnd, "a", "b")
	w.submit(w.of, steered).Close()
	w.await("all workers have buckets", func() bool {
		is, planned := w.progress(steered)
		return planned && len(is.Open) == 3
	})
	refused := func(id events.TaskID) {
		t.Helper()
		for name, submit := range map[string]func() error{
			"typed": func() error {
				_, err := w.of.Submit(w.within(), w.client, struct{}{}, task.SubmitOptions{ID: id})
				return err
			},
			"by name": func() error {
				_, err := w.client.SubmitRaw(w.within(), s.id, []byte("{}"), task.SubmitOptions{ID: id})
				return err
			},
		} {
			err := submit()
			_, invalid := errors.AsType[*events.InvalidError](err)
			limit, large := errors.AsType[*task.LimitError](err)
			if !invalid && !(large && limit.Field == "id" && limit.Limit == events.MaxWorkParentBytes) {
				t.Errorf("submit %s of %s: %v", name, id, err)
			}
		}
	}
	refused(events.WorkerID(steered, 2))
	long := make([]byte, events.MaxWorkParentBytes)
	for i := range long {
		long[i] = 'x'
	}
	refused("t/" + events.TaskID(long))
	f, err := w.client.SubmitRaw(w.within(), s.id, []byte(`{"worker_of":"`+string(steered)+`"}`),
		task.SubmitOptions{ID: events.WorkerID(steered, 77)}) // which nobody has made a worker
	w.must(err)
	if _, err := f.Wait(w.within()); err != nil {
		t.Errorf("a task that says it is a worker: %v", err)
	}
	if is, _ := w.progress(steered); len(is.Open) != 3 || is.Workers.Active != 3 {
		t.Errorf("%+v", is.Workers)
	}
	w.must(w.client.Operations().Cancel(w.within(), steered, ""))
	w.workersEnded(steered)
}

// callers holds which items asked for a permit on which node.
type callers struct {
	mu    sync.Mutex
	items map[string]map[int64]bool
}

func newCallers() *callers { return &callers{items: map[string]map[int64]bool{}} }

func (a *callers) note(node string, n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.items[node] == nil {
		a.items[node] = map[int64]bool{}
	}
	a.items[node][n] = true
}

func (a *callers) by(node string) []int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.items[node]))
}

// permitsAreApplied waits until as many items of each bucket are applied as the journal has permits of it. It passes
// over buckets of which an item asked on a node that is dead.
func (w *steer) permitsAreApplied(dead []int64) {
	w.Helper()
	size := w.shape.items / w.shape.buckets
	permits := map[int64]int{}
	for ev, err := range w.client.Ledger().History(w.within(), steered) {
		w.must(err)
		if b, is := ev.Body.(*events.PermitsGranted); is {
			permits[int64(b.Bucket)-1] += len(b.Items)
		}
	}
	for _, n := range dead {
		delete(permits, n/size)
	}
	w.await("each permit of a living node is applied", func() bool {
		applied := map[int64]int{}
		for _, n := range w.tally.appliedTo() {
			if _, counts := permits[n/size]; counts {
				applied[n/size]++
			}
		}
		return maps.Equal(applied, permits)
	})
}
