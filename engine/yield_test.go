package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Attempts compute on every processor: a yield takes a time slice of each. Owners and senders must not wait for that
// again and again.
func TestYielder_WaitsForBusyGoroutinesOnlyOnce(t *testing.T) {
	var stop atomic.Bool
	var busy sync.WaitGroup
	defer busy.Wait()
	defer stop.Store(true)
	for range 8 * runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for x := 0; !stop.Load(); x++ {
				_ = x * x
			}
		})
	}
	var y yielder
	yields := 0
	for y.yield() {
		if yields++; yields == 50 {
			t.Fatal("the 50th yield still waits")
		}
	}
	if yields == 0 {
		t.Error("no yield let others run")
	}
}
