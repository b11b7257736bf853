package sender

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Attempts compute on every processor: a yield takes a time slice of each. Owners and senders must not wait for that
// at once.
func TestYielder_DoesNotWaitForBusyGoroutinesTwiceInARow(t *testing.T) {
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
	for began := time.Now(); y.not.Load() == 0; {
		if !y.Yield() {
			t.Fatal("does not yield although no yield has taken long")
		}
		if time.Since(began) > 30*time.Second {
			t.Fatal("no yield counts as long")
		}
	}
	if y.Yield() {
		t.Error("yields again right after one that took long")
	}
}
