// Package signal wakes goroutines.
package signal

// Signal wakes the goroutine that receives from it. Notified more than once before it is received, it is received
// once.
type Signal chan struct{}

// New returns a signal that was not notified.
func New() Signal { return make(Signal, 1) }

// Notify gives the signal. It never blocks.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}
