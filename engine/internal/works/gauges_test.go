package works_test

import (
	"fmt"
	"testing"

	"taskledger/engine/internal/command"
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
