package bench_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/measure"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
)

const (
	worksWarmUp = time.Second             // in which the workers of a work are made, and come to their speed
	manyBuckets = segmentation.MaxBuckets // more than a window has time for

	itemBuckets = 256
	bucketItems = 100
	itemTakes   = 5 * time.Millisecond
	itemWorkers = 30
)

// BenchmarkWorks compares empty buckets, which the workers of a work end, with noop tasks of one shard, of which as
// many are in flight. Then 30 workers work on 256 buckets of 100 items that take 5 ms each: for which share of their
// time are they on items?
func BenchmarkWorks(b *testing.B) {
	for _, workers := range []int{32, 4} {
		b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
			run(b, func(tb testing.TB) figures { return buckets(tb, workers) })
		})
	}
}

func buckets(tb testing.TB, workers int) figures {
	empty, items := newEmpty(workers), newBusy()
	p := pair(tb, servers(tb, 0), max(workers, itemWorkers), empty.Work, items.Work)
	tasks := measure.Closed(workers, 1, ofOneShard(p))
	warmTasks := func(ctx context.Context, length time.Duration) (w measure.Window, err error) {
		if _, err = tasks(ctx, worksWarmUp); err != nil {
			return w, err
		}
		return tasks(ctx, length)
	}
	all := byTurns(tb, lasts(4*time.Second, 12*time.Second), warmTasks, empty.side(p))
	f := newFigures(tb)
	f.tasks("task", all[0].Sum())
	f.tasks("bucket", all[1].Sum())
	// Workers end empty buckets half as fast as so many noop tasks of one shard end, or faster, and spend nine tenths
	// of their time on items: 1.5 and 1 on a quiet machine.
	f.atLeast("ratio", measure.Ratio(all[1], all[0]), 0.5)
	f.atLeast("on-items-share", items.share(tb, p), 0.9)
	return f
}

// ofOneShard returns the turn of a caller who submits a task of one shard and waits for it.
func ofOneShard(p *measure.Pair) measure.Op {
	var turn atomic.Int64
	return measure.Submit(p.Client, noop, func(int) task.SubmitOptions {
		return task.SubmitOptions{ID: events.TaskID(fmt.Sprint("one/", turn.Add(1)))}
	})
}

// empty is a work of buckets without items.
type empty struct {
	*work.Work[behaviors.None, int64]
	made  int
	begun atomic.Int64 // buckets
}

func newEmpty(workers int) *empty {
	e := &empty{}
	e.Work = work.Define("empty", nil, work.Partition[behaviors.None, int64]{
		Items: func(context.Context, behaviors.None, work.Bucket) iter.Seq2[int64, error] {
			e.begun.Add(1)
			return func(func(int64, error) bool) {}
		},
		Process:      func(context.Context, int64) error { return nil },
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: manyBuckets, Buckets: manyBuckets},
		Workers:      int64(workers),
	})
	return e
}

// side returns the side whose windows count the buckets of a work that end. A window ends its work.
func (e *empty) side(p *measure.Pair) measure.Side {
	return func(ctx context.Context, length time.Duration) (w measure.Window, err error) {
		e.made++
		id := events.TaskID(fmt.Sprint("empty-", e.made))
		f, err := e.Submit(ctx, p, behaviors.None{}, task.SubmitOptions{ID: id})
		if err != nil {
			return w, fmt.Errorf("submit: %w", err)
		}
		pause(ctx, worksWarmUp)
		cpu, err := measure.CPU()
		if err != nil {
			return w, err
		}
		begun, before := time.Now(), e.begun.Load()
		pause(ctx, length)
		w.Took, w.Count = time.Since(begun), int(e.begun.Load()-before)
		used, err := measure.CPU()
		if err != nil {
			return w, err
		}
		w.CPU = used - cpu
		if err := p.Operations().Cancel(ctx, id, "the window is over"); err != nil {
			return w, fmt.Errorf("cancel: %w", err)
		}
		if _, err := f.Wait(ctx); err == nil {
			return w, fmt.Errorf("the work %s has ended before the window", id)
		}
		return w, ctx.Err()
	}
}

// busy is a work whose workers tell how long they spend on items.
type busy struct {
	*work.Work[behaviors.None, int]

	mu      sync.Mutex
	workers map[events.TaskID]*span
}

// span is the time of a worker, from its first bucket to its last item.
type span struct {
	from, to time.Time
	onItems  time.Duration
}

func newBusy() *busy {
	b := &busy{workers: map[events.TaskID]*span{}}
	b.Work = work.Define("items", nil, work.Partition[behaviors.None, int]{
		Items:        b.items,
		Process:      b.process,
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: itemBuckets, Buckets: itemBuckets},
		Workers:      itemWorkers,
	})
	return b
}

func (b *busy) items(ctx context.Context, _ behaviors.None, _ work.Bucket) iter.Seq2[int, error] {
	a, _ := behaviors.Attempt(ctx)
	b.mu.Lock()
	if b.workers[a.Task] == nil {
		b.workers[a.Task] = &span{from: time.Now()}
	}
	b.mu.Unlock()
	return func(yield func(int, error) bool) {
		for i := range bucketItems {
			if !yield(i, nil) {
				return
			}
		}
	}
}

func (b *busy) process(ctx context.Context, _ int) error {
	began := time.Now()
	pause(ctx, itemTakes)
	a, _ := behaviors.Attempt(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.workers[a.Task]
	of.to = time.Now()
	of.onItems += of.to.Sub(began)
	return ctx.Err()
}

// share runs the work and returns the share of their time that its workers spent on items; it is no number when none
// had one.
func (b *busy) share(tb testing.TB, p *measure.Pair) float64 {
	f := must(b.Submit(tb.Context(), p, behaviors.None{}, task.SubmitOptions{ID: "items"}))(tb)
	r := must(f.Wait(tb.Context()))(tb)
	if n := r.Partitions[0].Done; n != itemBuckets*bucketItems {
		tb.Fatalf("%d items are done, want %d", n, itemBuckets*bucketItems)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var all, onItems time.Duration
	for _, of := range b.workers {
		all += of.to.Sub(of.from)
		onItems += of.onItems
	}
	return onItems.Seconds() / all.Seconds()
}
