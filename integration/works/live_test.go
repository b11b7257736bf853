package works_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
)

// The numbers of midPoint's TestBucketingLive.
const (
	liveItems  = 107
	liveSize   = 10
	liveVictim = 44 // the item at which a worker stops
	liveBucket = 5  // the bucket that has it
)

// live is a work of 107 items in buckets of ten. The worker that comes first to item 44 stops there.
type live struct {
	*steer
	own     chan struct{} // is closed once the work's own task has a bucket
	reached chan struct{} // is closed once a worker has come to item 44
	began   sync.Once
	came    sync.Once
	slow    bool // item 43 takes so long that the attempt tells of it
	bursts  bool // the iterator breaks off at item 44, in place of the item

	mu     sync.Mutex
	bounds map[int64][2]int64 // that iterators were told, by bucket
}

func newLive(t *testing.T, slow, bursts bool) *live {
	return liveOn(t, &live{slow: slow, bursts: bursts}, testcluster.Options{}, "a", "b")
}

// liveOn starts nodes for l, of which slow and bursts are set.
func liveOn(t *testing.T, l *live, o testcluster.Options, nodes ...string) *live {
	l.steer = &steer{tally: newTally()}
	l.own, l.reached = make(chan struct{}), make(chan struct{})
	l.bounds = map[int64][2]int64{}
	l.of = l.define("client")
	l.world = newWorld(t, o, 0, func(node string) []task.Behavior {
		return []task.Behavior{l.define(node)}
	}, nodes...)
	return l
}

func (l *live) define(node string) *work.Work[struct{}, int64] {
	plan := segmentation.Plan{Kind: segmentation.Explicit}
	for from := int64(0); from < liveItems; from += liveSize {
		plan.Explicit = append(plan.Explicit, segmentation.Content{
			Kind: segmentation.Numeric,
			From: from,
			To:   min(from+liveSize, liveItems),
		})
	}
	return work.Define("live", &work.Options{
		Policy: task.Policy{Backoff: task.Backoff{Base: time.Millisecond, Max: time.Millisecond}},
	}, work.Partition[struct{}, int64]{
		ID:    "p1",
		Items: l.items,
		Process: func(ctx context.Context, n int64) error {
			if err := l.stop(ctx, n); err != nil {
				return err
			}
			l.tally.processed(node, number{"p1", n})
			return nil
		},
		Segmentation: plan,
		Workers:      3,
	})
}

func (l *live) items(_ context.Context, _ struct{}, b work.Bucket) iter.Seq2[int64, error] {
	l.mu.Lock()
	l.bounds[b.Number] = [2]int64{b.From, b.To}
	l.mu.Unlock()
	return func(yield func(int64, error) bool) {
		for n := b.From; n < b.To; n++ {
			if n == liveVictim && l.bursts {
				l.came.Do(func() {
					close(l.reached)
					panic("it explodes")
				})
			}
			if !yield(n, nil) {
				return
			}
		}
	}
}

// stop holds the work's own task in its first bucket until a worker has come to item 44, and that worker until the end
// of its attempt.
func (l *live) stop(ctx context.Context, n int64) (err error) {
	until := func(ch chan struct{}) error {
		select {
		case <-ch:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if is, _ := behaviors.Attempt(ctx); is.Task == steered {
		l.began.Do(func() { close(l.own) })
		return until(l.reached)
	}
	if err := until(l.own); err != nil {
		return err
	}
	select {
	case <-l.reached:
		return nil
	default:
	}
	switch {
	case n == liveVictim-1 && l.slow:
		return short(ctx, 11*time.Second)
	case n == liveVictim && !l.bursts:
		l.came.Do(func() {
			close(l.reached)
			err = untilEnd(ctx, n)
		})
	}
	return err
}

// victim returns the worker that stands at item 44 once all other buckets are done.
func (l *live) victim() events.TaskID {
	l.Helper()
	var id events.TaskID
	l.await("97 items are committed, and one bucket is open", func() bool {
		is, planned := l.progress(steered)
		if !planned || is.Items.Done != liveItems-liveSize || len(is.Open) != 1 {
			return false
		}
		if l.slow && is.Items.InOpen != liveVictim%liveSize { // the attempt has not told yet
			return false
		}
		id = is.Open[0].Task
		return is.Open[0].Number == liveBucket && id != steered
	})
	return id
}

// all waits for the end, at which all items are done, and those of the victim's bucket were processed again.
func (l *live) all(f *behaviors.Future[work.Result]) {
	l.Helper()
	r, err := f.Wait(l.within())
	l.must(err)
	if p := r.Partitions[0]; p.Done != liveItems || p.Failed+p.Skipped != 0 || p.Buckets != liveItems/liveSize+1 {
		l.Errorf("%+v", p)
	}
	if n, total := len(l.tally.times), l.tally.total(); n != liveItems || total > liveItems+liveVictim%liveSize {
		l.Errorf("%d items were processed, %d times", n, total)
	}
	l.workersEnded(steered)
	l.doneOnce(steered, liveItems/liveSize+1)
}

func TestLive_TheBucketOfAVictimIsDoneByOthersOnceItIsOver(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(l *live, victim events.TaskID){
		"closed": func(l *live, victim events.TaskID) {
			l.must(l.client.Operations().Cancel(l.within(), victim, ""))
		},
		"deleted": func(l *live, victim events.TaskID) {
			l.must(l.client.Operations().Cancel(l.within(), victim, ""))
			l.await("the victim is deleted", func() bool {
				return l.client.Operations().Delete(l.within(), victim) == nil
			})
		},
		"refused to be suspended, then closed": func(l *live, victim events.TaskID) {
			l.refused(l.client.Operations().Suspend(l.within(), victim, ""))
			if is, _ := l.progress(steered); len(is.Open) != 1 || is.Open[0].Task != victim {
				l.Errorf("the bucket of a worker that is not suspended: %+v", is.Open)
			}
			l.must(l.client.Operations().Cancel(l.within(), victim, ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t, name == "closed", false)
			f := l.submit(l.of, steered)
			victim := l.victim()
			ends(l, victim)
			l.all(f)
			if n := l.tally.total(); n != liveItems+liveVictim%liveSize {
				t.Errorf("%d items were processed, want those of the victim twice", n)
			}
		})
	}
}

func TestLive_AWorkerThatExplodesGivesItsBucketBack(t *testing.T) {
	t.Parallel()
	l := newLive(t, false, true)
	l.all(l.submit(l.of, steered))
	returned := 0
	for _, b := range l.moves(steered) {
		if b.Cause == events.ReturnedFailed && b.Returned == liveBucket {
			returned++
		}
	}
	if returned != 1 {
		t.Errorf("the bucket was given back %d times, want once", returned)
	}
}

func TestLive_EachIteratorIsToldTheBoundsOfItsBucket(t *testing.T) {
	t.Parallel()
	l := newLive(t, false, true)
	l.all(l.submit(l.of, steered))
	want := map[int64][2]int64{}
	for n := range int64(liveItems/liveSize + 1) {
		want[n+1] = [2]int64{n * liveSize, min((n+1)*liveSize, liveItems)}
	}
	if !maps.Equal(l.bounds, want) {
		t.Errorf("buckets %v have the bounds %v", slices.Sorted(maps.Keys(l.bounds)), l.bounds)
	}
}

func TestLive_ASingleWorkerDoesFourBucketsAndThoseOfTheNextRun(t *testing.T) {
	t.Parallel()
	s := shape{id: "single", items: 40, buckets: 4, workers: 1, limit: -1}
	w := newSteer(t, s, func(context.Context, int64) error { return nil }, "a")
	for run := int64(1); run <= 2; run++ {
		if run == 1 {
			_, err := w.submit(w.of, steered).Wait(w.within())
			w.must(err)
		} else {
			_, err := w.client.Operations().Retry(w.within(), steered)
			w.must(err)
		}
		w.await("the run has ended", func() bool {
			is, _ := w.progress(steered)
			return is.Run == run && is.Partitions[0].Buckets.Done == 4 && is.Items.Done == 40 &&
				w.show(steered).Status == task.Success
		})
		started, ended := 0, 0
		for _, b := range w.moves(steered) {
			if b.Started != 0 {
				started++
			}
			if b.Ended != 0 {
				ended++
			}
		}
		if want := 4 * int(run); started != want || ended != want {
			t.Errorf("after run %d buckets were started %d times and ended %d times, want %d", run, started, ended, want)
		}
	}
}
