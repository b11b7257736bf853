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
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
)

// The shapes of midPoint's TestWorkerTasks, by its numbers. The second run of each makes its workers anew.
func TestWorkers_OfEachShapeProcessEachItemOnceARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shape shape
		nodes []string
	}{
		"100 one worker":                   {shape{items: 80, buckets: 20, workers: 1}, []string{"a"}},
		"110 four workers of 20 buckets":   {shape{items: 80, buckets: 20, workers: 4}, []string{"a"}},
		"120 two nodes with two of them":   {shape{items: 80, buckets: 20, workers: 4}, []string{"a", "b"}},
		"130 1000 items that do nothing":   {shape{items: 1000, buckets: 20, workers: 4}, []string{"a", "b"}},
		"170 numbers in buckets by count":  {shape{items: 999, buckets: 10, workers: 2}, []string{"a", "b"}},
		"170 fewer buckets than workers":   {shape{items: 20, buckets: 2, workers: 9}, []string{"a", "b"}},
		"170 as many buckets as there are": {shape{items: 13, buckets: 13, workers: 3}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.shape
			s.id, s.limit = "crew", -1
			w := newSteer(t, s, func(context.Context, int64) error { return nil }, c.nodes...)
			_, err := w.submit(w.of, steered).Wait(w.within())
			w.must(err)
			w.workersEnded(steered)
			w.doneOnce(steered, s.buckets)
			_, err = w.client.Operations().Retry(w.within(), steered)
			w.must(err)
			w.await("the second run has ended", func() bool {
				is, _ := w.progress(steered)
				return is.Run == 2 && is.Items.Done == uint64(s.items) && w.show(steered).Status == task.Success
			})
			w.workersEnded(steered)
			for it, times := range w.tally.times {
				if times != 2 {
					t.Errorf("item %d was processed %d times in two runs", it.n, times)
				}
			}
			if len(w.tally.times) != int(s.items) {
				t.Errorf("%d items were processed, want %d", len(w.tally.times), s.items)
			}
		})
	}
}

// TestActivities 180: three partitions cut one set in three ways, and their buckets do not mix.
func TestPartitions_CutTheSetEachInItsOwnWay(t *testing.T) {
	t.Parallel()
	to := map[string]*tally{"whole": newTally(), "halves": newTally(), "tens": newTally()}
	define := func(node string) *work.Work[struct{}, int64] {
		partition := func(id string, plan segmentation.Plan) work.Partition[struct{}, int64] {
			return work.Partition[struct{}, int64]{
				ID: id,
				Items: func(_ context.Context, _ struct{}, b work.Bucket) iter.Seq2[int64, error] {
					to[id].began(id, b.Number)
					from, until := b.From, b.To
					if id == "whole" {
						from, until = 0, 50
					}
					return func(yield func(int64, error) bool) {
						for n := from; n < until && yield(n, nil); n++ {
						}
					}
				},
				Process: func(ctx context.Context, n int64) error {
					if is, _ := work.Run(ctx); is.Partition != id {
						return fmt.Errorf("an item of %s in %s", id, is.Partition)
					}
					to[id].processed(node, number{id, n})
					return nil
				},
				Segmentation: plan,
				Workers:      3,
			}
		}
		return work.Define("siblings", nil,
			partition("whole", segmentation.Plan{}),
			partition("halves", segmentation.Plan{Kind: segmentation.Numeric, To: 50, Buckets: 2}),
			partition("tens", segmentation.Plan{Kind: segmentation.Numeric, To: 50, Size: 10}),
		)
	}
	w := newWorld(t, testcluster.Options{}, 0, func(node string) []task.Behavior {
		return []task.Behavior{define(node)}
	}, "a", "b")
	r, err := w.submit(define("client"), steered).Wait(w.within())
	w.must(err)
	for i, want := range []struct {
		id      string
		buckets int64
	}{{"whole", 1}, {"halves", 2}, {"tens", 5}} {
		p, is := r.Partitions[i], to[want.id]
		if p.ID != want.id || p.Buckets != want.buckets || p.Done != 50 || p.Failed != 0 {
			t.Errorf("%+v, want %d buckets of %s with 50 items", p, want.buckets, want.id)
		}
		if len(is.buckets[want.id]) != int(want.buckets) || len(is.times) != 50 || is.total() != 50 {
			t.Errorf("%s: buckets %v, %d items", want.id, is.buckets, is.total())
		}
	}
	w.workersEnded(steered)
}

// TestActivities 190 and 210: each partition fails once, and is retried; those before it are not repeated.
func TestPartitions_FailAndGoOnWithoutThoseThatHaveEnded(t *testing.T) {
	t.Parallel()
	var broken [3]atomic.Bool
	for i := range broken {
		broken[i].Store(true)
	}
	s := shape{
		id:         "composite",
		partitions: len(broken),
		items:      20,
		buckets:    4,
		workers:    2,
		limit:      -1,
		rules:      []work.Rule{{React: work.Stop}},
	}
	w := newSteer(t, s, func(ctx context.Context, n int64) error {
		is, _ := work.Run(ctx)
		if at := is.Partition[1] - '1'; n == 12 && broken[at].Load() {
			return errors.New("not yet")
		}
		return nil
	}, "a", "b")
	w.submit(w.of, steered).Close()
	for i := range broken {
		w.ends(task.Failure)
		w.workersEnded(steered)
		is, _ := w.progress(steered)
		for n, p := range is.Partitions {
			if complete := p.EndedAt != 0; complete != (n < i) || n > i && p.StartedAt != 0 {
				t.Errorf("partition %d when %d has failed: %+v", n+1, i+1, p)
			}
		}
		broken[i].Store(false)
		_, err := w.client.Operations().Retry(w.within(), steered)
		w.must(err)
		if i < len(broken)-1 {
			w.await("it fails in the next partition", func() bool {
				is, _ := w.progress(steered)
				return is.Partitions[i].EndedAt != 0
			})
		}
	}
	w.ends(task.Success)
	w.workersEnded(steered)
	if is, _ := w.progress(steered); is.Items.Done != 60 || is.Items.Failed != 0 {
		t.Errorf("%+v", is.Items)
	}
	ended := 0
	for _, b := range w.moves(steered) {
		if b.Ended != 0 {
			ended++
		}
	}
	if want := s.partitions * int(s.buckets); ended != want {
		t.Errorf("buckets have ended %d times, want %d: none twice", ended, want)
	}
}

// TestActivities 300: all workers are told one time at which the run began.
func TestRun_BeganAtOneTimeForAllItsWorkers(t *testing.T) {
	t.Parallel()
	s := shape{id: "stamped", partitions: 2, items: 60, buckets: 12, workers: 6, limit: -1}
	var mu sync.Mutex
	stamps, workers := map[time.Time]int{}, map[events.TaskID]bool{}
	w := newSteer(t, s, func(ctx context.Context, _ int64) error {
		is, _ := work.Run(ctx)
		a, _ := behaviors.Attempt(ctx)
		mu.Lock()
		stamps[is.Started.UTC()]++
		workers[a.Task] = true
		mu.Unlock()
		return short(ctx, 10*time.Millisecond)
	}, "a", "b", "c")
	_, err := w.submit(w.of, steered).Wait(w.within())
	w.must(err)
	w.workersEnded(steered)
	planned := events.Millis(0)
	if is, _ := w.progress(steered); is.PlannedAt != 0 {
		planned = is.PlannedAt
	}
	if all := slices.Collect(maps.Keys(stamps)); len(all) != 1 || !all[0].Equal(planned.Time()) || len(workers) < 2 {
		t.Errorf("%d workers were told %v, want %v alone", len(workers), all, planned.Time())
	}
}

// TestActivities 400: a work that runs tells how fast it is, and what is left.
func TestReport_OfAWorkThatRunsTellsItsThroughput(t *testing.T) {
	t.Parallel()
	s := shape{id: "measured", items: 40, buckets: 8, workers: 2, limit: -1}
	hold := make(chan struct{})
	w := newSteer(t, s, func(ctx context.Context, n int64) error {
		if n < 20 {
			return short(ctx, 5*time.Millisecond)
		}
		select {
		case <-hold:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, "a", "b")
	f := w.submit(w.of, steered)
	w.await("half of the buckets are done", func() bool {
		is, planned := w.progress(steered)
		return planned && len(is.Partitions) > 0 && is.Partitions[0].Buckets.Done == 4
	})
	is, _ := w.progress(steered)
	p := is.Partitions[0]
	if p.ItemsPerSecond == nil || p.BucketsPerSecond == nil || p.TimeLeftMs == nil || p.WallClockMs <= 0 ||
		*p.Items.Expected != 40 || is.Progress != "50 % (4 of 8 buckets)" {
		t.Errorf("%s, %+v", is.Progress, p)
	}
	close(hold)
	_, err := f.Wait(w.within())
	w.must(err)
	w.workersEnded(steered)
}
