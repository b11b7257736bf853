package worker

import (
	"context"
	"sync"
	"time"
)

// attemptContext is the context of an attempt. A standard context is entered with its parent and taken out again,
// which costs more than a short function: so it is made when somebody looks, or at an end that must be remembered,
// and from then on is what this one shows. Contexts that are derived from this one find it by Value, and need no
// goroutine that waits.
type attemptContext struct {
	attempt  *attempt
	deadline time.Time // zero = none; somebody must look at that time

	mu       sync.Mutex
	standard context.Context         // nil before the first look
	cancel   context.CancelCauseFunc // of standard
	returned bool                    // the function has, before the first look
}

// Deadline implements context.Context.
func (c *attemptContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

// Done implements context.Context.
func (c *attemptContext) Done() <-chan struct{} { return c.look().Done() }

// Value implements context.Context. Any key may be the one by which package context finds what it can cancel.
func (c *attemptContext) Value(key any) any {
	if key == (lendKey{}) {
		return c.attempt
	}
	if v := c.attempt.x.cfg.Value(key); v != nil {
		return v
	}
	return c.look().Value(key)
}

// Err implements context.Context. It is asked after every attempt, and does not look while nothing has ended.
func (c *attemptContext) Err() error {
	c.mu.Lock()
	unseen := c.standard == nil && !c.returned
	c.mu.Unlock()
	if unseen && c.attempt.session.ctx.Err() == nil {
		return nil
	}
	return c.look().Err()
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
	c.lookLocked()
	cancel := c.cancel
	c.mu.Unlock()
	cancel(cause)
}

func (c *attemptContext) look() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lookLocked()
}

func (c *attemptContext) lookLocked() context.Context {
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
