package engine

import "time"

// signal wakes the goroutine that receives from it. Given more than once before it is received, it is received once.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// notify gives the signal. It never blocks.
func (s signal) notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// clockBase anchors the monotonic clock of fences.
var clockBase = time.Now()
