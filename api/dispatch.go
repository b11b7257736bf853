package api

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"taskledger/api/doors"
	"taskledger/api/measured"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/engine"
)

// serve lets a request through to its route, once its caller is known.
func (s *shared) serve(w http.ResponseWriter, r *http.Request, route *Route) {
	c := &Call{w: w, r: r, shared: s, route: route}
	measured.Of(w).Route = route.name
	route.Page.set(w.Header())
	done, refused := c.admit()
	defer done()
	if refused != nil {
		s.refusals.refuse(w, r, refused)
		return
	}
	defer c.dropBody()
	ctx, cancel := c.bound(r.Context())
	defer cancel()
	c.ctx = engine.WithCaller(ctx, c.eventCaller())
	defer c.recovered()
	defer c.leave()
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

// admit finds the caller, and counts its request in until done.
func (c *Call) admit() (done func(), refused *problem.Problem) {
	uncounted := func() {}
	if c.route.Role == token.Nobody {
		return uncounted, nil
	}
	secret := c.shared.refusals.secret(c.r)
	if c.by = c.shared.tokens.Find(secret); secret == "" || c.by == nil {
		return uncounted, problem.New(problem.Unauthorized, "%s", c.shared.refusals.wantsSecret(c.r))
	}
	doors.Of(c.r).ShowsToken()
	c.caller, done, refused = c.shared.callers.enter(c.by.Name, c.route.Class)
	if refused != nil {
		return uncounted, refused
	}
	return done, c.allowed()
}

// bound gives a request the time of its class.
func (c *Call) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	switch c.route.Class {
	case Stream, Pages:
		return context.WithCancel(ctx)
	case Poll:
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(MaxWait + answerWithin + writeWithin))
		return context.WithTimeout(ctx, MaxWait+answerWithin)
	}
	return context.WithTimeout(ctx, answerWithin)
}

// recovered answers for a route that has panicked. It must be deferred.
func (c *Call) recovered() {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // it is this value itself
		panic(v)
	}
	c.shared.log.ErrorContext(c.ctx, "a request has panicked: a bug",
		"route", c.route.Pattern, "panic", v, "stack", string(debug.Stack()))
	if c.begun {
		panic(http.ErrAbortHandler) // cut the connection: the client would take half an answer for a whole one
	}
	c.refuse(problem.New(problem.Internal, ""))
}

// serve checks the request, waits for a place if its answer may be large, and calls the route.
func (c *Call) serve() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.route.Large && c.route.Page == nil && !c.asksForLittle() {
		if err := c.enter(c.ctx); err != nil {
			return err
		}
	}
	return c.route.Serve(c)
}
