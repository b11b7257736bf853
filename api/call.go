package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"taskledger/api/problem"
	"taskledger/api/shape"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/store"
)

// Call is a request that its route takes, and the answer to it.
type Call struct {
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	api    *API
	route  *Route
	by     *token.Token // the token of the caller; nil on routes that need none
	caller *caller      // limits of the caller; nil on routes that need no token
	id     events.TaskID
	query  url.Values
	held   int64       // bytes of the budgets of bodies
	whole  bool        // its body was read to the end
	placed bool        // it has a place among the large answers that are made
	begun  bool        // an answer
	lapsed atomic.Bool // the token no longer holds
}

// serve checks what of the request every route checks alike.
func (c *Call) serve() error {
	if err := c.checkQuery(); err != nil {
		return err
	}
	if c.route.Scope == OneTask {
		id := idOf(c.r.PathValue("id"))
		if err := id.Validate(); err != nil {
			return &store.InvalidError{Field: "id", Problem: err.Error()}
		}
		if !c.by.MayTask(id) {
			return problem.New(problem.NotFound, "there is no task %s", id)
		}
		c.id = id
	}
	if err := c.checkHeaders(); err != nil {
		return err
	}
	if err := c.checkNoBody(); err != nil {
		return err
	}
	if c.route.Large && !c.asksForLittle() {
		if err := c.enter(); err != nil {
			return err
		}
	}
	return c.route.Serve(c)
}

// checkHeaders refuses headers that would not do what their sender believes.
func (c *Call) checkHeaders() error {
	changes := c.route.Method != http.MethodGet
	for name, refused := range map[string]bool{"If-Match": true, "If-Unmodified-Since": true, "If-None-Match": changes} {
		if refused && c.r.Header.Get(name) != "" {
			return &store.InvalidError{Field: name, Problem: "changes under a condition are not supported"}
		}
	}
	if changes && !c.route.Keyed && len(c.r.Header.Values(keyHeader)) > 0 {
		return &store.InvalidError{Field: keyHeader, Problem: "this route takes none: what is repeated is done again"}
	}
	return nil
}

// nothing is the most text of a body that says nothing.
const nothing = 16

// checkNoBody refuses a body where the route takes none. An empty object says nothing, and many clients send one.
func (c *Call) checkNoBody() error {
	if c.route.MaxBody > 0 || c.r.ContentLength == 0 || c.route.Method == http.MethodGet {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(c.r.Body, nothing+1))
	if says := string(bytes.TrimSpace(text)); err != nil || len(text) > nothing || says != "" && says != "{}" {
		return problem.New(problem.Malformed, "%s %s takes no body", c.route.Method, c.route.Pattern)
	}
	c.whole = true
	return nil
}

// checkQuery refuses parameters that the route does not know, and such that come twice.
func (c *Call) checkQuery() error {
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return problem.New(problem.Malformed, "query: %s", err)
	}
	for name, values := range query {
		known := false
		for _, p := range c.route.Query {
			known = known || p.Name == name
		}
		switch {
		case !known:
			return &store.InvalidError{Field: shape.Clip(name), Problem: "the route has no such parameter"}
		case len(values) > 1:
			return &store.InvalidError{Field: name, Problem: "it is there more than once"}
		}
	}
	c.query = query
	return nil
}

// Context is that of the request. Commands sent with it carry the caller as their asker.
func (c *Call) Context() context.Context { return c.ctx }

// patient is a context in which the request waits: for a time, and as untilEnded.
func (c *Call) patient(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(c.ctx, d)
	return ctx, c.ending(cancel)
}

// untilEnded is the context of the request until the server drains, or the token of the caller no longer holds.
func (c *Call) untilEnded() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.ctx)
	return ctx, c.ending(cancel)
}

// ending cancels a context when requests that wait or stream end. What it returns cancels it, too, and must be called.
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
	looked := c.api.vigil.watch(c, end)
	return func() { drained(); looked(); cancel() }
}

// ErrEnds is why a context of Parked has ended before the request.
var ErrEnds = errors.New("the request no longer waits: its server drains, or its token no longer holds")

// Parked is the context of a request that waits for at most so long, besides what answers take, until the server drains, or the token of the
// caller no longer holds: its cause is ErrEnds then.
func (c *Call) Parked(wait time.Duration) (context.Context, context.CancelFunc) {
	bounded, stop := context.WithTimeout(c.ctx, wait+answerWithin)
	ctx, cancel := context.WithCancelCause(bounded)
	ended := c.ending(func() { cancel(ErrEnds) })
	return ctx, func() { ended(); stop() }
}

// Drains reports whether the server drains, and the caller may still be answered.
func (c *Call) Drains() bool { return c.ends() && !c.lapsed.Load() }

// Ask is a context for one question of a route of class Pages.
func (c *Call) Ask() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, answerWithin)
}

// Path returns the value of a wildcard of the pattern.
func (c *Call) Path(name string) string { return c.r.PathValue(name) }

// EscapedPath is that of the request as it was sent. A pattern that ends with {$} takes a last segment that is an encoded slash, as well.
func (c *Call) EscapedPath() string { return c.r.URL.EscapedPath() }

// ends reports whether streams end, whatever is left of them, and that is no failure: the server drains, or the token no longer holds.
func (c *Call) ends() bool {
	serving, ok := c.r.Context().Value(drainKey{}).(context.Context)
	return ok && serving.Err() != nil || c.lapsed.Load()
}

// Token is that of the caller; nil on routes that need none.
func (c *Call) Token() *token.Token { return c.by }

// Param returns a parameter of the query, "" for none.
func (c *Call) Param(name string) string { return c.query.Get(name) }

// flag reads a parameter that is true or false.
func (c *Call) flag(name string) (bool, error) {
	switch text := c.Param(name); text {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	default:
		return false, &store.InvalidError{Field: name, Problem: fmt.Sprintf("%.32q: want true or false", text)}
	}
}

// number reads a parameter that is a whole number within bounds.
func (c *Call) number(name string, otherwise, least, most int) (int, error) {
	text := c.Param(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, &store.InvalidError{Field: name, Problem: fmt.Sprintf("%.32q: want %d to %d", text, least, most)}
	}
	return n, nil
}

// wait reads how long the request waits for an outcome, and whether it does.
func (c *Call) wait() (d time.Duration, is bool, err error) {
	text := c.Param("wait")
	if text == "" {
		return 0, false, nil
	}
	d, err = time.ParseDuration(text)
	if err != nil || d < 0 || d > MaxWait {
		return 0, false, &store.InvalidError{Field: "wait", Problem: fmt.Sprintf("%.32q: want a time such as 5s, %s at most", text, MaxWait)}
	}
	return d, true, nil
}

// fail answers with what is wrong, and logs what the caller is not told.
func (c *Call) fail(err error) {
	p := c.told(err)
	if (c.begun || p.Type == problem.Internal) && c.ctx.Err() == nil && (c.route.Class < Stream || !c.ends()) {
		c.api.log.ErrorContext(c.ctx, "a request failed", "route", c.route.Pattern, "err", err)
	}
	if c.begun {
		panic(http.ErrAbortHandler) // cut the connection: the client would take half an answer for a whole one
	}
	c.refuse(p)
}

// fieldNames are those of requests which the engine knows by another name.
var fieldNames = map[string]string{"parameters": "params", "not before": "not_before", "request key": keyHeader}

// told is an error as the caller is told: one whose token is for some tasks alone does not learn whether there is another.
func (c *Call) told(err error) *problem.Problem {
	if c.lapsed.Load() {
		return lapsed()
	}
	p := problem.Of(err)
	if name, is := fieldNames[p.Field]; is {
		if rest, begins := strings.CutPrefix(p.Detail, p.Field+": "); begins {
			p.Detail = name + ": " + rest
		}
		p.Field = name
	}
	if p.Type == problem.NotFound && c.by != nil && c.by.Limited() {
		p.Detail = "there is no such task, or the token is not for it"
	}
	return p
}

func (c *Call) refuse(p *problem.Problem) {
	c.begun = true
	c.dropBody()
	c.leave()
	if c.whole {
		c.api.tell(c.w, c.r, p)
		return
	}
	c.api.refuse(c.w, c.r, p)
}

// flushAfter is how long what is written of a stream may wait for what comes next.
const flushAfter = 100 * time.Millisecond

// stream is an answer that is written as it comes, as far as its reader keeps up. Its end must be called after the last write.
type stream struct {
	call    *Call
	flushed time.Time
}

// Stream begins an answer of a route of class Pages that does not fit one page. end sends what is left of it, and must be called after the last
// write. It counts among the streams of the caller until done.
func (c *Call) Stream() (w io.Writer, end func() error, done func(), err error) {
	left, p := c.api.callers.streaming(c.by.Name, c.caller)
	if p != nil {
		return nil, nil, nil, p
	}
	c.leave() // one page after the other is in memory from now on
	ctx, cancel := context.WithCancel(c.ctx)
	c.ctx = ctx
	ended := c.ending(cancel)
	s := &stream{call: c}
	return s, s.end, func() { ended(); left() }, nil
}

// Write implements io.Writer.
func (s *stream) Write(data []byte) (int, error) {
	if now := time.Now(); now.Sub(s.flushed) > flushAfter {
		s.flushed = now
		if err := s.end(); err != nil {
			return 0, err
		}
	}
	return s.call.w.Write(data)
}

// end sends what is written. Nothing is an answer, too.
func (s *stream) end() error {
	c := s.call
	if !c.begun {
		c.w.Header().Set("Content-Type", c.route.Type)
		c.begin(http.StatusOK)
	}
	control := http.NewResponseController(c.w)
	within := writeWithin
	if c.route.Class == Pages {
		within = progressWithin
	}
	_ = control.SetWriteDeadline(time.Now().Add(within))
	if c.ends() { // looked at now, as this deadline may just have taken the place of the last one
		_ = control.SetWriteDeadline(time.Now().Add(lastWriteWithin))
	}
	return control.Flush()
}
