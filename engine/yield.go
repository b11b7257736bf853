package engine

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// yieldMost is how long letting others run may take.
	yieldMost = time.Millisecond
	// yieldPause is how long nobody yields after it has taken longer.
	yieldPause = 5 * time.Second
)

// yielder lets whoever is ready to run go first. Where many goroutines compute, that waits for a time slice of each of
// them: then it does not, for a while.
type yielder struct{ not atomic.Int64 } // before that time, on the monotonic clock

// yield reports whether it let others run.
func (y *yielder) yield() bool {
	began := time.Since(clockBase)
	if int64(began) < y.not.Load() {
		return false
	}
	runtime.Gosched()
	if now := time.Since(clockBase); now-began > yieldMost {
		y.not.Store(int64(now + yieldPause))
	}
	return true
}
