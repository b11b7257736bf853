// Package yielder lets goroutines that are ready to run go first, where that does not take long.
package yielder

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// Most is how long letting others run may take, which is half a time slice.
	Most = 5 * time.Millisecond
	// share bounds the time spent in yields that take longer to one part in so many.
	share = 20
)

// base anchors the monotonic clock.
var base = time.Now()

// Yielder lets whoever is ready to run go first. Where many goroutines compute, that waits for a time slice of each of
// them: then it does not, for a while. The zero value is ready.
type Yielder struct{ not atomic.Int64 } // before that time, on the monotonic clock

// Yield reports whether it let others run.
func (y *Yielder) Yield() bool {
	began := time.Since(base)
	if int64(began) < y.not.Load() {
		return false
	}
	runtime.Gosched()
	now := time.Since(base)
	if took := now - began; took > Most {
		y.not.Store(int64(now + share*took))
	}
	return true
}
