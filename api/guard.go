package api

import (
	"context"
	"crypto/rand"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"taskledger/api/doors"
	"taskledger/api/measured"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/engine"
	"taskledger/events"
)

// always are headers of every answer. The lists are shared, and never changed.
var always = http.Header{
	"X-Content-Type-Options":       {"nosniff"},
	"Cache-Control":                {"no-store"},
	"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'"},
	"Referrer-Policy":              {"no-referrer"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
}

// ServeHTTP answers a request, or refuses it before any route sees it.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer doors.Of(r).Serving()()
	a.open.Add(1)
	defer a.open.Add(-1)
	if a.watch != nil {
		watched, began, whole := &measured.Writer{ResponseWriter: w}, time.Now(), false
		defer func() {
			watched.Request.Took = time.Since(began)
			if !whole { // net/http cuts the connection
				watched.Request.Status = 0
			}
			a.watch.Answered(watched.Request)
		}()
		a.answer(watched, r)
		whole = true
		return
	}
	a.answer(w, r)
}

// State tells what is under way.
func (a *API) State() measured.State {
	return measured.State{Requests: int(a.open.Load()), Streams: a.callers.streams(), Waits: a.vigil.waits()}
}

func (a *API) answer(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w) // a connection without deadlines is one of a test
	_ = control.SetWriteDeadline(time.Now().Add(answerWithin + writeWithin))
	if r.ContentLength != 0 { // without a body, net/http reads the next request already, and this deadline would cancel the context of this one
		_ = control.SetReadDeadline(time.Now().Add(answerWithin))
	}
	h := w.Header()
	maps.Copy(h, always)
	if below := pathBelow(r); below != "" {
		r.URL.Path = below + r.URL.Path
		if r.URL.RawPath != "" {
			r.URL.RawPath = below + r.URL.RawPath
		}
	}
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	switch {
	case !doors.HostAllowed(r.Host, a.hosts):
		a.refuse(w, r, problem.New(problem.Forbidden, "host %.100q is not one of this server's names: a page elsewhere may have led here", r.Host))
	case !sameOrigin(r):
		a.refuse(w, r, problem.New(problem.Forbidden, "a page of another origin asks"))
	case !isClean(a.inShape(r.URL)):
		a.refuse(w, r, problem.New(problem.NotFound, "the path is not in its shortest form"))
	default:
		a.mux.ServeHTTP(w, r)
	}
}

// inShape is what of a URL has to be in its shortest form. A front with a dialect has names in which any character may be, if it is encoded.
func (a *API) inShape(u *url.URL) string {
	if a.dialectOf(u.Path) != nil {
		return u.EscapedPath()
	}
	return u.Path
}

// dialectOf is that of a path; nil = that of RFC 9457.
func (a *API) dialectOf(path string) *Dialect {
	for i := range a.dialect {
		if strings.HasPrefix(path, a.dialect[i].Path) {
			return &a.dialect[i]
		}
	}
	return nil
}

// isClean reports whether a path is as the mux has it: another one would be redirected.
func isClean(p string) bool {
	bare := strings.TrimSuffix(p, "/")
	return p == "/" || len(bare) > 1 && bare[0] == '/' && path.Clean(p) == bare
}

// sameOrigin reports whether a request comes from no browser, or from a page of this server.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host && (u.Scheme == "https") == (r.TLS != nil)
}

// serve lets a request through to its route, once it is known who asks.
func (a *API) serve(w http.ResponseWriter, r *http.Request, route *Route) {
	c := &Call{w: w, r: r, api: a, route: route}
	measured.Of(w).Route = route.name
	if route.Role != token.Nobody {
		secret := Secret(r)
		if c.by = a.tokens.Find(secret); secret == "" || c.by == nil {
			a.refuse(w, r, problem.New(problem.Unauthorized, "want the header Authorization: Bearer and a token that is known"))
			return
		}
		doors.Of(r).ShowsToken()
		caller, done, p := a.callers.enter(c.by.Name, route.Class)
		if p != nil {
			a.refuse(w, r, p)
			return
		}
		defer done()
		c.caller = caller
		if p := c.allowed(); p != nil {
			a.refuse(w, r, p)
			return
		}
	}
	defer c.dropBody()
	ctx, cancel := c.bound(r.Context())
	defer cancel()
	c.ctx = engine.WithAsker(ctx, c.asker())
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler { //nolint:errorlint // it is this value itself
				panic(v)
			}
			a.log.ErrorContext(ctx, "a request has panicked: a bug", "route", route.Pattern, "panic", v, "stack", string(debug.Stack()))
			if c.begun {
				panic(http.ErrAbortHandler) // cut the connection: the client would take half an answer for a whole one
			}
			c.refuse(problem.New(problem.Internal, ""))
		}
	}()
	defer c.leave()
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

// Secret returns what a request shows for a token. A URL with a user and a password is taken like the header: old
// clients know no other.
func Secret(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// allowed says why the token does not allow the route.
func (c *Call) allowed() *problem.Problem {
	switch {
	case !c.by.Role.Allows(c.route.Role):
		return problem.New(problem.Forbidden, "a token of role %s is asked for, this one is of a %s", c.route.Role, c.by.Role)
	case c.route.Scope == Everything && c.by.Limited():
		return problem.New(problem.Forbidden, "this is of the whole cluster, and the token of some of its tasks")
	case c.route.Scope == OneStore && !c.by.MayStore(c.r.PathValue("name")):
		return problem.New(problem.Forbidden, "the token is not for the store %.64q", c.r.PathValue("name"))
	}
	return nil
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

// asker is who asks, for the events of what is asked. What a caller says of its request is cut to what an event takes.
func (c *Call) asker() events.Asker {
	if c.by == nil {
		return events.Asker{}
	}
	return events.Asker{Principal: c.by.Name, RequestID: c.requestID(), Traceparent: traceparent(c.r.Header.Get("traceparent"))}
}

const maxRequestID = 64

// requestID names the request in logs and events: as the caller does, or drawn.
func (c *Call) requestID() string {
	id := c.r.Header.Get("X-Request-Id")
	plain := !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
	if id == "" || len(id) > maxRequestID || !plain {
		id = rand.Text()[:16]
	}
	c.w.Header()["X-Request-Id"] = []string{id}
	return id
}

// traceparent is that of the caller, if an event takes it.
func traceparent(text string) string {
	if (&events.Asker{Traceparent: text}).Validate() != nil {
		return ""
	}
	return text
}

// refuse answers with a problem. A body that nobody has read to its end is dropped as far as that takes little, and
// the connection ends.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	if r.ContentLength == 0 {
		a.tell(w, r, p)
		return
	}
	w.Header().Set("Connection", "close")
	a.tell(w, r, p)
	a.linger(w, r)
}

// tell writes a problem in the dialect of the path.
func (a *API) tell(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	measured.Of(w).Refused = p.Type
	if p.Type == problem.Unauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="taskledger", Basic realm="taskledger"`)
	}
	if d := a.dialectOf(r.URL.Path); d != nil {
		d.Refuse(w, p)
		return
	}
	p.Write(w) // net/http leaves the text out where HEAD asks
}

const (
	// So much of a body is read and dropped after its request was refused, for so long, of so many requests at once.
	lingerBytes  = 16 << 20
	lingerWithin = 2 * time.Second
	lingerAtOnce = 64
)

// linger reads what a client still sends after its request was refused: many read no answer before they have sent
// all, and lose it when the connection is reset meanwhile.
func (a *API) linger(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Expect") != "" || !a.lingering.TryAcquire(1) { // who expects to be told before it sends is told
		return
	}
	defer a.lingering.Release(1)
	doors.Of(r).Answered()
	control := http.NewResponseController(w)
	if control.Flush() != nil || control.SetReadDeadline(time.Now().Add(lingerWithin)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytes) // it ends with the body, mostly
}
