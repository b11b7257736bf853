package sender

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// yieldMost bounds the time for which others are let run: half a time slice.
	yieldMost = 5 * time.Millisecond
	// yieldShare bounds the time spent in yields that take longer to one part in so many.
	yieldShare = 20
)

// base anchors the monotonic clock.
var base = time.Now()

// yielder lets goroutines that are ready run first. Where many goroutines compute, that waits for a time slice of
// each of them: then it does not, for a while. The zero value is ready.
type yielder struct{ not atomic.Int64 } // before that time, on the monotonic clock

// Yield reports whether it let others run.
func (y *yielder) Yield() bool {
	began := time.Since(base)
	if int64(began) < y.not.Load() {
		return false
	}
	runtime.Gosched()
	now := time.Since(base)
	if took := now - began; took > yieldMost {
		y.not.Store(int64(now + yieldShare*took))
	}
	return true
}
