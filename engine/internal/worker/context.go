package worker

import (
	"context"
	"sync"
	"time"
)

// attemptContext is the context of an attempt. Registering a standard context with its parent and removing it costs
// more than a short function, so the standard context is made at first use, or at an end that must be remembered, and
// answers for this one from then on. Contexts derived from this one find it by Value, and need no goroutine.
type attemptContext struct {
	attempt  *attempt
	deadline time.Time // zero = none; the standard context has to be made by then

	mu       sync.Mutex
	standard context.Context         // nil before the first use
	cancel   context.CancelCauseFunc // of standard
	returned bool                    // the function has returned before the first use
}

// Deadline implements context.Context.
func (c *attemptContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

// Done implements context.Context.
func (c *attemptContext) Done() <-chan struct{} { return c.materialize().Done() }

// Value implements context.Context. Any key may be the one by which package context finds what it can cancel.
func (c *attemptContext) Value(key any) any {
	if key == (lendKey{}) {
		return c.attempt
	}
	if v := c.attempt.x.cfg.Value(key); v != nil {
		return v
	}
	return c.materialize().Value(key)
}

// Err implements context.Context. It is called after every attempt, and makes no standard context while nothing has
// ended.
func (c *attemptContext) Err() error {
	c.mu.Lock()
	unseen := c.standard == nil && !c.returned
	c.mu.Unlock()
	if unseen && c.attempt.session.ctx.Err() == nil {
		return nil
	}
	return c.materialize().Err()
}

// String implements fmt.Stringer: fmt would read the fields while they change.
func (c *attemptContext) String() string { return "attempt" }

// end ends the context, unless it has ended. The cause is nil when the function has returned.
func (c *attemptContext) end(cause error) {
	c.mu.Lock()
	if c.standard == nil && cause == nil {
		c.returned = true
		c.mu.Unlock()
		return
	}
	c.materializeLocked()
	cancel := c.cancel
	c.mu.Unlock()
	cancel(cause)
}

// materialize returns the standard context, and makes it at the first call.
func (c *attemptContext) materialize() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.materializeLocked()
}

func (c *attemptContext) materializeLocked() context.Context {
	switch {
	case c.standard != nil:
	case c.returned: // before whatever has ended its parent since
		c.standard, c.cancel = context.WithCancelCause(context.WithoutCancel(c.attempt.session.ctx))
		c.cancel(nil)
	case c.deadline.IsZero():
		c.standard, c.cancel = context.WithCancelCause(c.attempt.session.nextParent())
	default:
		parent, cancel := context.WithCancelCause(c.attempt.session.nextParent())
		standard, stop := context.WithDeadlineCause(parent, c.deadline, errTimeout)
		c.standard, c.cancel = standard, func(cause error) { cancel(cause); stop() }
	}
	return c.standard
}
