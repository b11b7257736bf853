package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"

	"taskledger/api/token"
	"taskledger/events"
)

// Call is a request that its route takes, and the answer to it.
type Call struct {
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	shared *shared
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

// shared holds what all calls of an API use together.
type shared struct {
	budgets  budgets
	callers  *callers
	refusals *refusals
	tokens   Tokens
	watcher  *tokenWatcher
	table    http.Handler // serves the routes
	log      *slog.Logger
}

// Context returns the context of the request. The journal records the caller of the commands that are sent with it.
func (c *Call) Context() context.Context { return c.ctx }

// Token returns the token of the caller; nil on routes that need none.
func (c *Call) Token() *token.Token { return c.by }

// Path returns the value of a wildcard of the pattern.
func (c *Call) Path(name string) string { return c.r.PathValue(name) }

// Task returns the id of the task that a route of the scope OneTask concerns.
func (c *Call) Task() events.TaskID { return c.id }

// Header returns the headers of the answer. They may be set until it begins.
func (c *Call) Header() http.Header { return c.w.Header() }

// EscapedPath returns the path of the request as it was sent. A pattern that ends with {$} takes a last segment that
// is an encoded slash, as well.
func (c *Call) EscapedPath() string { return c.r.URL.EscapedPath() }
