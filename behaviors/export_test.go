package behaviors

import "time"

// SetClock replaces time and chance.
func (b *Behavior[P, R]) SetClock(now func() time.Time, random func() float64) {
	b.now, b.random = now, random
}

// Task declares the methods of *engine.Future that a Future calls.
type Task interface {
	identity
	source
}

// NewFuture returns the future of a task that is not an engine's.
func NewFuture[R any](t Task) *Future[R] { return futureOf[R](t, t) }
