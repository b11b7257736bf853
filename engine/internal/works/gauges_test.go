package works_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/tally"
	"taskledger/meter"
	"taskledger/work/workledger"
)

// wantGauges reports an error unless these are the gauges of streams: changes that are open, keys that are held, and
// holds that are retried, parked or have failed.
func (w *world) wantGauges(what, want string) {
	w.t.Helper()
	is := map[meter.Gauge]int64{}
	w.Gauges(func(g meter.Gauge, value int64) { is[g] = value })
	got := fmt.Sprint(is[meter.StreamChangesOpen], is[meter.StreamKeysHeld], is[meter.StreamHoldsRetried],
		is[meter.StreamHoldsParked], is[meter.StreamHoldsFailed])
	if got != want {
		w.t.Errorf("%s: the gauges are %s, want %s", what, got, want)
	}
}

func TestStream_GaugesTellWhatIsOpenAndHeld(t *testing.T) {
	w := streamed(t)
	w.wantGauges("at the beginning", "0 0 0 0 0")
	s := w.record(parent)
	parked, passed := begins("b", "2"), begins("c", "3")
	parked.Parked, passed.Parked, passed.Passed = true, true, true
	w.moveTo(s, workledger.Move{
		Token: "3",
		Open:  7,
		Holds: []workledger.Hold{begins("a", "1"), parked, passed},
	})
	w.wantGauges("three are held", "7 2 1 2 0")
	w.takeOver()
	w.wantGauges("behind a take-over", "7 2 1 2 0")
	w.moveTo(s, workledger.Move{Token: "4"})
	w.wantGauges("all are processed", "0 2 1 2 0")
	w.operate(hold(2), command.DoResume)
	w.wantGauges("one is resumed", "0 2 2 1 0")
	w.startHold(1, "n-3")
	w.complete(hold(1), command.Failed, func(c *command.Complete) { c.ByPolicy = false })
	w.wantGauges("one has failed for good", "0 2 1 1 1")
	w.startHold(2, "n-3")
	w.held(w.record(hold(2)), 1)
	w.wantGauges("one has ended", "0 1 0 1 1")
	w.operate(hold(1), command.DoDelete)
	w.operate(hold(3), command.DoDelete)
	w.wantGauges("the others are deleted", "0 0 0 0 0")
}

// changesCounted is a meter that remembers.
type changesCounted map[meter.Counter]int64

func (c changesCounted) Count(of meter.Counter, _ string, n int64) { c[of] += n }

func (changesCounted) Observe(meter.Histogram, string, []float64) {}

func (changesCounted) Set(meter.Gauge, string, float64) {}

func TestStream_ChangesAreCountedByWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	w.moveTo(s, workledger.Move{Token: "3", Items: workledger.Counts{Done: 3, Failed: 2}})
	w.moveTo(s, workledger.Move{Token: "9", Items: workledger.Counts{Done: 1, Skipped: 5}})
	to := changesCounted{}
	counted := tally.New(to)
	for i := range w.told {
		w.Count(&w.told[i], counted)
	}
	counted.Count(0, 0)
	if want := (changesCounted{meter.ChangesProcessed: 4, meter.ChangesFailed: 2, meter.ChangesSkipped: 5}); !maps.Equal(to, want) {
		t.Errorf("counted %v, want %v", to, want)
	}
}

// The oldest change of all streams counts, as long as it is open.
func TestStream_TheGaugeOfTheOldestChangeTellsWhenItCame(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	wants := func(what string, want int64) {
		w.t.Helper()
		is := int64(-1)
		w.Gauges(func(g meter.Gauge, value int64) {
			if g == meter.StreamOldestAge {
				is = value
			}
		})
		if is != want {
			t.Errorf("%s: the oldest came at %d, want %d", what, is, want)
		}
	}
	wants("at the beginning", 0)
	w.moveTo(s, workledger.Move{Open: 2, Oldest: time.UnixMilli(7_000)})
	wants("two are open", 7_000)
	w.takeOver()
	wants("behind a take-over", 7_000)
	w.moveTo(s, workledger.Move{Token: "1", Open: 1, Oldest: time.UnixMilli(9_000)})
	wants("one is open", 9_000)
	w.moveTo(s, workledger.Move{Token: "2"})
	wants("none is open", 0)
	v := meter.Vitals{Fronts: map[meter.Gauge]int64{}}
	for _, at := range []int64{50_000, 0, 20_000, 90_000} { // of shards
		v.AddFront(meter.StreamOldestAge, at, time.UnixMilli(80_999))
		v.AddFront(meter.StreamChangesOpen, 2, time.UnixMilli(80_999))
	}
	if v.Fronts[meter.StreamOldestAge] != 60 || v.Fronts[meter.StreamChangesOpen] != 8 {
		t.Errorf("of all shards %v, want an age of 60 s, and 8 changes", v.Fronts)
	}
}
