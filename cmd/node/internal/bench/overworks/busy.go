package overworks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"taskledger/behaviors"
	"taskledger/cmd/node/internal/bench"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
)

const (
	itemBuckets = 256
	bucketItems = 100
	itemTakes   = 5 * time.Millisecond
	itemWorkers = 30
)

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
	timer := time.NewTimer(itemTakes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	a, _ := behaviors.Attempt(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.workers[a.Task]
	of.to = time.Now()
	of.onItems += of.to.Sub(began)
	return ctx.Err()
}

// share runs the work and returns the share of their time that its workers spent on items.
func (b *busy) share(ctx context.Context, p *bench.Pair) (float64, error) {
	f, err := b.Submit(ctx, p, behaviors.None{}, task.SubmitOptions{ID: "items"})
	if err != nil {
		return 0, fmt.Errorf("submit: %w", err)
	}
	r, err := f.Wait(ctx)
	if err != nil {
		return 0, err
	}
	if n := r.Partitions[0].Done; n != itemBuckets*bucketItems {
		return 0, fmt.Errorf("%d items are done, want %d", n, itemBuckets*bucketItems)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var all, onItems time.Duration
	for _, of := range b.workers {
		all += of.to.Sub(of.from)
		onItems += of.onItems
	}
	if all == 0 {
		return 0, errors.New("no worker had an item")
	}
	return onItems.Seconds() / all.Seconds(), nil
}
