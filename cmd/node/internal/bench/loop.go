package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// window holds the operations that a number of workers did in a stretch of time.
type window struct {
	count int
	took  time.Duration
	times []time.Duration // of each operation, sorted
}

func (w window) perSecond() float64 { return float64(w.count) / w.took.Seconds() }

// stuckAfter bounds how long operations under way at the end of a window may take.
const stuckAfter = 30 * time.Second

var errStuck = fmt.Errorf("what was under way at the end of a window did not end within %s", stuckAfter)

// closedLoop keeps workers busy with op for d: each begins the next as soon as its last is done. What is under way at
// the end is waited for and counts, with its time. The first error ends it.
func closedLoop(ctx context.Context, workers int, d time.Duration, op func(ctx context.Context, worker int) error) (window, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var over atomic.Bool
	end := time.AfterFunc(d, func() { over.Store(true) })
	defer end.Stop()
	stuck := time.AfterFunc(d+stuckAfter, func() { cancel(errStuck) })
	defer stuck.Stop()
	times := make([][]time.Duration, workers)
	begun := time.Now()
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			ctx, done := context.WithCancel(ctx) // every caller has one of its own
			defer done()
			var mine []time.Duration // not in times before the end: writers of one cache line would wait for each other
			defer func() { times[i] = mine }()
			for !over.Load() {
				start := time.Now()
				if err := op(ctx, i); err != nil {
					over.Store(true)
					cancel(err)
					return
				}
				mine = append(mine, time.Since(start))
			}
		})
	}
	all.Wait()
	w := window{took: time.Since(begun), times: slices.Concat(times...)}
	w.count = len(w.times)
	slices.Sort(w.times)
	if ctx.Err() != nil {
		return w, context.Cause(ctx)
	}
	return w, nil
}

// quantile of sorted times, in milliseconds; 0 of none.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := min(int(q*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i].Microseconds()) / 1000
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
