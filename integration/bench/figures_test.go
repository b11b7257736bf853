package bench_test

import (
	"context"
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	"taskledger/internal/measure"
	"taskledger/internal/testkit"
)

var length = flag.Duration("lasts", 0, "time of the windows of each measurement; 0 = as PROOF says")

// lasts returns how long a measurement takes: all in a proof, else few.
func lasts(few, all time.Duration) time.Duration {
	if *length > 0 {
		return *length
	}
	return time.Duration(testkit.Times(int(few), int(all)))
}

// figures collects the results of a measurement by their units. The bounds of a proof are held as they are set, so that
// a figure that is missing, which is not a number, breaks its bound.
type figures struct {
	testing.TB
	by map[string]float64
}

func newFigures(tb testing.TB) figures { return figures{tb, map[string]float64{}} }

// is sets a figure without a bound.
func (f figures) is(unit string, value float64) { f.by[unit] = value }

// atLeast sets a figure with a bound from below.
func (f figures) atLeast(unit string, value, least float64) {
	f.Helper()
	f.is(unit, value)
	if testkit.Whole() && !(value >= least) {
		f.Errorf("%s is %.3f, want at least %v", unit, value, least)
	}
}

// atMost sets a figure with a bound from above.
func (f figures) atMost(unit string, value, most float64) {
	f.Helper()
	f.is(unit, value)
	if testkit.Whole() && !(value <= most) {
		f.Errorf("%s is %.3f, want at most %v", unit, value, most)
	}
}

// tasks sets the rate of what has a name, and what each takes of the processors.
func (f figures) tasks(name string, all measure.Window) {
	f.is(name+"/s", all.PerSecond())
	f.is("cpu-us/"+name, all.CPUEach())
}

// run makes a measurement for each iteration of a benchmark, and reports the median of each figure.
func run(b *testing.B, measurement func(testing.TB) figures) {
	all := map[string][]float64{}
	for range b.N {
		for unit, value := range once(b, measurement).by {
			all[unit] = append(all[unit], value)
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(all)) {
		b.ReportMetric(measure.Median(all[unit]), unit)
	}
	b.ReportMetric(0, "ns/op") // leaves it out
}

// once makes a measurement, and ends what it has started.
func once(b *testing.B, measurement func(testing.TB) figures) figures {
	s := &scope{B: b}
	defer s.end()
	return measurement(s)
}

// scope has measurements of a benchmark end one by one.
type scope struct {
	*testing.B
	ends []func()
}

// Cleanup implements testing.TB.
func (s *scope) Cleanup(end func()) { s.ends = append(s.ends, end) }

func (s *scope) end() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
}

// check ends the measurement by an error.
func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// must returns a value, or ends the measurement by its error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		check(tb, err)
		return value
	}
}

// byTurns is measure.ByTurns for sides that are warm.
func byTurns(tb testing.TB, total time.Duration, sides ...measure.Side) []measure.Series {
	tb.Helper()
	return must(measure.ByTurns(tb.Context(), total, measure.MinWindow, sides...))(tb)
}

// warm lets each side have a window that does not count.
func warm(tb testing.TB, sides ...measure.Side) {
	tb.Helper()
	check(tb, measure.Warm(tb.Context(), sides...))
}

// pause waits, and returns false when working has ended.
func pause(working context.Context, d time.Duration) bool {
	if d <= 0 {
		return working.Err() == nil
	}
	select {
	case <-working.Done():
		return false
	case <-time.After(d):
		return true
	}
}
