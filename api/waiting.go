package api

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// drainKey is the context key of the context that ends when requests that wait are to end.
type drainKey struct{}

// withTimeout returns a context in which the request waits: for a time, and as untilEnded.
func (c *Call) withTimeout(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(c.ctx, d)
	return ctx, c.ending(cancel)
}

// untilEnded returns the context of the request until the server drains, or the token of the caller no longer holds.
func (c *Call) untilEnded() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.ctx)
	return ctx, c.ending(cancel)
}

// ending cancels a context when requests that wait or stream end. The returned function cancels it, too, and must be
// called.
func (c *Call) ending(cancel context.CancelFunc) context.CancelFunc {
	end := func() {
		cancel()
		if c.route.Class >= Stream { // a reader that has stopped reading would hold up the end
			_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(lastWriteWithin))
		}
	}
	drained := func() bool { return true }
	if serving, ok := c.r.Context().Value(drainKey{}).(context.Context); ok {
		drained = context.AfterFunc(serving, end)
	}
	unwatch := c.watchToken(end)
	return func() { drained(); unwatch(); cancel() }
}

// watchToken calls end once the token of the caller no longer holds, until the returned function is called.
func (c *Call) watchToken(end func()) (done func()) {
	if c.by == nil {
		return func() {}
	}
	return c.shared.watcher.watch(&watched{
		by:     c.by,
		secret: c.shared.refusals.secret(c.r),
		waits:  c.route.Class < Stream,
		end: func() {
			c.lapsed.Store(true)
			end()
		},
	})
}

// ErrEnds is the cause of a context of Parked that has ended before the request.
var ErrEnds = errors.New("the request no longer waits: its server drains, or its token no longer holds")

// Parked returns the context of a request that waits for at most so long, besides what answers take, until the server
// drains, or the token of the caller no longer holds: its cause is ErrEnds then.
func (c *Call) Parked(wait time.Duration) (context.Context, context.CancelFunc) {
	bounded, stop := context.WithTimeout(c.ctx, wait+answerWithin)
	ctx, cancel := context.WithCancelCause(bounded)
	ended := c.ending(func() { cancel(ErrEnds) })
	return ctx, func() { ended(); stop() }
}

// Rest waits for the duration d, or until ctx ends, and gives up the place among the large answers meanwhile.
func (c *Call) Rest(ctx context.Context, d time.Duration) error {
	placed := c.placed
	c.leave()
	rest := time.NewTimer(d)
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-rest.C:
	}
	if placed {
		return c.enter(c.ctx)
	}
	return nil
}

// Ask returns the context for one of several questions that a route asks, which bounds the time of that question. The
// caller ends it with the returned function.
func (c *Call) Ask() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, answerWithin)
}

// Drains reports whether the server drains while the token of the caller still holds: the caller may be answered
// then.
func (c *Call) Drains() bool { return c.ends() && !c.lapsed.Load() }

// ends reports whether streams end, whatever is left of them, and that is no failure: the server drains, or the token
// no longer holds.
func (c *Call) ends() bool {
	serving, ok := c.r.Context().Value(drainKey{}).(context.Context)
	return ok && serving.Err() != nil || c.lapsed.Load()
}
