package api

import (
	"net/http"
	"strings"

	"taskledger/api/problem"
)

// fail answers with what is wrong, and logs what the caller does not learn.
func (c *Call) fail(err error) {
	p := c.problemOf(err)
	if (c.begun || p.Type == problem.Internal) && c.ctx.Err() == nil && (c.route.Class < Stream || !c.ends()) {
		c.shared.log.ErrorContext(c.ctx, "a request failed", "route", c.route.Pattern, "err", err)
	}
	if c.begun {
		panic(http.ErrAbortHandler) // cut the connection: the client would take half an answer for a whole one
	}
	c.refuse(p)
}

// fieldNames maps the names that the engine gives to fields to the names that requests give them.
var fieldNames = map[string]string{"parameters": "params", "not before": "not_before", "request key": keyHeader}

// problemOf returns an error as the caller reads it: a token that is for some tasks alone does not show whether there
// is another task.
func (c *Call) problemOf(err error) *problem.Problem {
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
		p.Detail = "it is not there, or the token is not for it"
	}
	return p
}

// refuse answers with a problem.
func (c *Call) refuse(p *problem.Problem) {
	c.begun = true
	c.w.Header().Del("ETag") // it belongs to the page that is not sent
	c.dropBody()
	c.leave()
	if c.whole {
		c.shared.refusals.write(c.w, c.r, p)
		return
	}
	c.shared.refusals.refuse(c.w, c.r, p)
}
