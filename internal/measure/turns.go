package measure

import (
	"context"
	"runtime"
	"slices"
	"time"
)

const (
	// MinWindow bounds windows from below: shorter ones mostly measure their neighbours.
	MinWindow = 2 * time.Second
	// WarmUp is the time of the windows that do not count.
	WarmUp = 500 * time.Millisecond
)

// Side makes a window of about a length.
type Side func(ctx context.Context, length time.Duration) (Window, error)

// Closed returns a side whose windows are closed loops of op, each turn of which counts so many times.
func Closed(workers, size int, op Op) Side {
	return func(ctx context.Context, length time.Duration) (Window, error) {
		w, err := Loop(ctx, workers, length, op)
		w.Count *= size
		return w, err
	}
}

// Series holds the windows of one side, in their order.
type Series []Window

// Warm lets each side have a window that does not count.
func Warm(ctx context.Context, sides ...Side) error {
	for _, side := range sides {
		if _, err := side(ctx, WarmUp); err != nil {
			return err
		}
	}
	return nil
}

// ByTurns lets the sides have a window each, one after the other, again and again, so that whatever slows the machine
// down for a while is felt by all of them. It makes as many rounds of windows, of the least length, as fit into a
// total, and one where none does; then windows are as long as the total allows.
func ByTurns(ctx context.Context, total, least time.Duration, sides ...Side) ([]Series, error) {
	n := time.Duration(len(sides))
	rounds := max(1, total/(n*least))
	length := max(least, total/(n*rounds))
	all := make([]Series, len(sides))
	for range rounds {
		for i, side := range sides {
			runtime.GC() // no window pays for the garbage of another one
			w, err := side(ctx, length)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], w)
		}
	}
	return all, nil
}

// Sum returns the sum of the windows.
func (s Series) Sum() (all Window) {
	for _, w := range s {
		all.Count += w.Count
		all.Took += w.Took
		all.CPU += w.CPU
		all.Times = append(all.Times, w.Times...)
	}
	slices.Sort(all.Times)
	return all
}

// Ratio returns the median, over the rounds, of the rate of one side by that of the other in the same round.
func Ratio(of, to Series) float64 {
	var ratios []float64
	for i := range of {
		ratios = append(ratios, of[i].PerSecond()/to[i].PerSecond())
	}
	return Median(ratios)
}
