package works_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/progress"
	"taskledger/work/segmentation"
)

// consistent reports an error where a report contradicts itself, or tells less than the one before.
func (w *steer) consistent(before, is progress.Work) {
	w.Helper()
	p, size := is.Partitions[0], uint64(w.shape.items/w.shape.buckets)
	switch {
	case is.Items.Done < before.Items.Done,
		len(before.Partitions) > 0 && p.Buckets.Done < before.Partitions[0].Buckets.Done:
		w.Errorf("%d items of %d buckets are done, after %+v", is.Items.Done, p.Buckets.Done, before.Items)
	case is.Items.Done != p.Buckets.Done*size:
		w.Errorf("%d items of %d buckets are done, want %d of each", is.Items.Done, p.Buckets.Done, size)
	case is.Items.InOpen > uint64(len(is.Open))*size || len(is.Open) > int(w.shape.workers):
		w.Errorf("%d items in %d open buckets of %d workers", is.Items.InOpen, len(is.Open), w.shape.workers)
	case p.Buckets.Open != uint64(len(is.Open)) || p.Buckets.Done+p.Buckets.Open > p.Buckets.Total:
		w.Errorf("buckets %+v, of which %d are told", p.Buckets, len(is.Open))
	case uint64(w.tally.total()) < is.Items.Done:
		w.Errorf("%d items are done, of %d that were processed", is.Items.Done, w.tally.total())
	case is.State == progress.Suspended && w.show(steered).Status == task.Success:
		w.Errorf("a work that has ended is told to be suspended")
	}
}

func TestReport_ACountThatHangsIsSeen(t *testing.T) {
	t.Parallel()
	returns := make(chan struct{})
	define := func(string) *work.Work[struct{}, int64] {
		return work.Define("counted", nil, work.Partition[struct{}, int64]{
			Items: func(context.Context, struct{}, work.Bucket) iter.Seq2[int64, error] {
				return func(func(int64, error) bool) {}
			},
			Count: func(ctx context.Context, _ struct{}) (int64, error) {
				select {
				case <-returns:
				case <-ctx.Done():
				}
				return 0, ctx.Err()
			},
			Process: func(context.Context, int64) error { return nil },
		})
	}
	w := &steer{of: define("client")}
	w.world = newWorld(t, testcluster.Options{}, 0, func(node string) []task.Behavior {
		return []task.Behavior{define(node)}
	}, "a")
	f := w.submit(w.of, steered)
	w.await("the report tells that the partition begins", func() bool {
		is, planned := w.progress(steered)
		return planned && is.Progress == "beginning" && is.Partitions[0].BeginsSince != 0 && is.Workers.Running == 1
	})
	close(returns)
	_, err := f.Wait(w.within())
	w.must(err)
	if is, _ := w.progress(steered); is.Partitions[0].BeginsSince != 0 || is.State != progress.Complete {
		t.Errorf("behind the count: %+v", is)
	}
}

// midPoint's TestProgressReporting: each is suspended twice.
func TestProgress_NeverFallsAndFitsItsBuckets(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]shape{
		"plain":   {items: 120, buckets: 1, workers: 1, threads: 1},
		"threads": {items: 120, buckets: 1, workers: 1, threads: 4},
		"buckets": {items: 120, buckets: 12, workers: 1, threads: 1},
		"workers": {items: 120, buckets: 12, workers: 4, threads: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.id, s.limit = "reported", -1
			w := newSteer(t, s, func(ctx context.Context, _ int64) error { return short(ctx, 5*time.Millisecond) }, "a", "b")
			f := w.submit(w.of, steered)
			var is progress.Work
			look := func() {
				if next, planned := w.progress(steered); planned && len(next.Partitions) > 0 {
					w.consistent(is, next)
					is = next
				}
			}
			for n := range 2 {
				least := w.tally.total() + 15
				w.await("it goes on", func() bool {
					look()
					return w.tally.total() >= least || is.State == progress.Complete
				})
				w.must(w.client.Operations().Suspend(w.within(), steered, ""))
				w.await("no bucket is open", func() bool {
					look()
					return len(is.Open) == 0 && is.Workers.Running == 0
				})
				if is.State != progress.Suspended && is.State != progress.Complete {
					t.Errorf("suspended for time %d it is %s", n+1, is.State)
				}
				w.must(w.client.Operations().Resume(w.within(), steered))
			}
			w.await("it ends", func() bool {
				look()
				return w.show(steered).Status == task.Success
			})
			if _, err := f.Wait(w.within()); err != nil || is.Partitions[0].Items.Done > uint64(s.items) {
				t.Errorf("%v, %+v", err, is.Items)
			}
			if look(); is.Items.Done != uint64(s.items) || is.State != progress.Complete || is.Progress != "complete" {
				t.Errorf("at the end: %s, %s, %+v", is.State, is.Progress, is.Items)
			}
			w.workersEnded(steered)
		})
	}
}

// faulty is a work of 40 items in eight buckets, one of whose functions fails while it is broken.
type faulty struct {
	broken atomic.Bool
	phase  string
}

var errBroken = errors.New("it is broken")

func (f *faulty) fails(phase string, at bool) error {
	if f.phase != phase || !at || !f.broken.Load() {
		return nil
	}
	return behaviors.Code("broken", errBroken, nil)
}

func (f *faulty) define() *work.Work[struct{}, int64] {
	return work.Define("faulty", &work.Options{
		Policy: task.Policy{MaxAttempts: 2, Backoff: task.Backoff{Base: time.Millisecond, Max: time.Millisecond}},
	}, work.Partition[struct{}, int64]{
		ID: "all",
		Items: func(_ context.Context, _ struct{}, b work.Bucket) iter.Seq2[int64, error] {
			return func(yield func(int64, error) bool) {
				for n := b.From; n < b.To; n++ {
					err := f.fails("fetching", n == 17)
					if err == nil && f.fails("iterating", n == 17) != nil {
						panic(errBroken)
					}
					if !yield(n, err) {
						return
					}
				}
			}
		},
		Count: func(context.Context, struct{}) (int64, error) { return 40, f.fails("counting", true) },
		Key: func(n int64) string {
			if f.fails("filtering", n == 17) != nil {
				panic(errBroken)
			}
			return ""
		},
		Process:      func(_ context.Context, n int64) error { return f.fails("processing", n == 17) },
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: 40, Buckets: 8},
		Workers:      2,
	})
}

// midPoint's TestTaskReporting: a failure of each phase is told, and mended it is gone after a retry.
func TestReporting_AFailureOfEachPhaseIsTold(t *testing.T) {
	t.Parallel()
	for phase, fails := range map[string]string{
		"counting":   "",
		"processing": "",
		"fetching":   events.CodeItems,
		"iterating":  events.CodeItems,
		"filtering":  events.CodeItems, // by the function of keys, which sees each item before it is processed
	} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			is := &faulty{phase: phase}
			is.broken.Store(true)
			w := &steer{of: is.define()}
			w.world = newWorld(t, testcluster.Options{}, 0, func(string) []task.Behavior {
				return []task.Behavior{is.define()}
			}, "a", "b")
			_, err := w.submit(w.of, steered).Wait(w.within())
			w.workersEnded(steered)
			told, _ := w.progress(steered)
			failed, _ := errors.AsType[*task.Error](err)
			switch {
			case fails == "" && err != nil, fails != "" && (failed == nil || failed.Code != fails):
				t.Fatalf("it ends with %v, want the code %q", err, fails)
			case fails != "" && (failed.Properties["bucket"] != "4" || told.State != progress.Failed || told.Error == nil):
				t.Errorf("%v, %s, %+v", failed, told.State, told.Error)
			}
			var want uint64
			if phase == "processing" {
				want = 1
			}
			p := told.Partitions[0]
			if p.Items.Failed != want || p.Buckets.Failed != want || len(w.errorsOf(steered)) != int(want) {
				t.Errorf("%d failed items in %d buckets, %v, want %d", p.Items.Failed, p.Buckets.Failed, w.errorsOf(steered), want)
			}
			if expected := p.Items.Expected; (expected == nil) != (phase == "counting") {
				t.Errorf("expected items: %v", expected)
			}
			is.broken.Store(false)
			if phase == "processing" {
				w.must(w.client.Operations().RerunWork(w.within(), steered))
			} else {
				_, err = w.client.Operations().Retry(w.within(), steered)
				w.must(err)
			}
			w.await("mended, it ends", func() bool {
				now, _ := w.progress(steered)
				return now.State == progress.Complete && now.Items.Failed == 0 && w.show(steered).Status == task.Success
			})
			w.workersEnded(steered)
		})
	}
}

// errorsOf returns the errors of items that the journal tells.
func (w *world) errorsOf(id events.TaskID) (all []events.ItemError) {
	for _, b := range w.moves(id) {
		all = append(all, b.Errors...)
	}
	return all
}

// midPoint's TestThresholds: ten creations with a limit below ten, and with one of ten.
func TestThresholds_OfTenAdds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		modes   []work.Mode
		limit   int64
		trips   bool
		applied int
	}{
		"simulate":                         {[]work.Mode{work.Simulate}, 9, true, 0},
		"simulate, then execute":           {[]work.Mode{work.Simulate, work.Full}, 9, true, 0},
		"execute":                          {[]work.Mode{work.Full}, 9, true, 9},
		"simulate below the limit":         {[]work.Mode{work.Simulate}, 10, false, 0},
		"both parts below the limit":       {[]work.Mode{work.Simulate, work.Full}, 10, false, 10},
		"execute below the limit":          {[]work.Mode{work.Full}, 10, false, 10},
		"execute where nothing is allowed": {[]work.Mode{work.Full}, 0, true, 0},
	} {
		for how, s := range map[string]shape{
			"one":     {workers: 1, threads: 1, buckets: 1},
			"threads": {workers: 1, threads: 3, buckets: 1},
			"workers": {workers: 4, threads: 2, buckets: 5},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				s.id, s.items, s.partitions = "adds", 10, len(c.modes)
				s.modes, s.limit = c.modes, c.limit
				nodes := []string{"a"}
				if s.workers > 1 {
					nodes = []string{"a", "b"}
				}
				tenAdds(t, s, c.trips, c.applied, nodes)
			})
		}
	}
}

func tenAdds(t *testing.T, s shape, trips bool, applied int, nodes []string) {
	to := newTally()
	w := &steer{shape: s, tally: to, of: s.define("client", to, creating(to))}
	w.world = newWorld(t, testcluster.Options{}, 0, func(node string) []task.Behavior {
		return []task.Behavior{s.define(node, to, creating(to))}
	}, nodes...)
	_, err := w.submit(w.of, steered).Wait(w.within())
	failed, is := errors.AsType[*task.Error](err)
	if trips != (is && failed.Code == events.CodeThreshold) || !trips && err != nil {
		t.Fatalf("it ends with %v, want that it trips: %t", err, trips)
	}
	for again := 0; ; again++ {
		w.workersEnded(steered)
		if n := len(to.appliedTo()); n != applied {
			t.Errorf("%d are created after %d retries, want %d", n, again, applied)
		}
		told, _ := w.progress(steered)
		first := told.Partitions[0].Thresholds[0]
		if first.Count != uint64(s.limit) || first.Tripped != trips {
			t.Errorf("the counter of the first partition is %+v", first)
		}
		if last := told.Partitions[len(told.Partitions)-1]; len(told.Partitions) > 1 && trips == (last.EndedAt != 0) {
			t.Errorf("the second partition is %+v", last)
		}
		if !trips || again == 2 {
			return
		}
		_, err := w.client.Operations().Retry(w.within(), steered)
		w.must(err)
		w.ends(task.Failure)
	}
}
