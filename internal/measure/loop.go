package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Op is one turn of a worker, whose number it gets.
type Op = func(ctx context.Context, worker int) error

// Window holds what was done in a stretch of time.
type Window struct {
	Count int
	Took  time.Duration
	CPU   time.Duration   // of this process
	Times []time.Duration // of each operation, sorted; nil where none was timed
}

// PerSecond returns the rate.
func (w Window) PerSecond() float64 { return float64(w.Count) / w.Took.Seconds() }

// CPUEach returns the processor time of an operation, in microseconds.
func (w Window) CPUEach() float64 { return float64(w.CPU.Microseconds()) / float64(max(w.Count, 1)) }

// stuckAfter bounds how long operations under way at the end of a window may take.
const stuckAfter = 30 * time.Second

var errStuck = fmt.Errorf("what was under way at the end of a window did not end within %s", stuckAfter)

// Loop keeps workers busy with op for d: each begins the next as soon as its last is done. What is under way at
// the end is waited for and counts, with its time. The first error ends it.
func Loop(ctx context.Context, workers int, d time.Duration, op Op) (Window, error) {
	before, err := CPU()
	if err != nil {
		return Window{}, err
	}
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
	w := Window{Took: time.Since(begun), Times: slices.Concat(times...)}
	w.Count = len(w.Times)
	after, err := CPU()
	w.CPU = after - before
	slices.Sort(w.Times)
	if ctx.Err() != nil {
		return w, context.Cause(ctx)
	}
	return w, err
}

// Quantile returns a quantile of sorted times in milliseconds; NaN of none.
func Quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	i := min(int(q*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i].Microseconds()) / 1000
}

// Median returns the median of values; NaN of none.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
