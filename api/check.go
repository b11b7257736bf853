package api

import (
	"bytes"
	"io"
	"net/http"
	"net/url"

	"taskledger/api/problem"
	"taskledger/events"
)

// allowed returns why the token does not allow the route, nil if it does.
func (c *Call) allowed() *problem.Problem {
	switch {
	case !c.by.Role.Allows(c.route.Role):
		return problem.New(problem.Forbidden,
			"a token of role %s is asked for, this one is of a %s", c.route.Role, c.by.Role)
	case c.route.Scope == Everything && c.by.Limited():
		return problem.New(problem.Forbidden, "this is of the whole cluster, and the token of some of its tasks")
	case c.route.Scope == OneStore && !c.by.MayStore(c.r.PathValue("name")):
		return problem.New(problem.Forbidden, "the token is not for the store %.64q", c.r.PathValue("name"))
	}
	return nil
}

// check checks what of the request every route checks alike.
func (c *Call) check() error {
	if err := c.checkQuery(); err != nil {
		return err
	}
	if c.route.Scope == OneTask {
		id := idOf(c.r.PathValue("id"))
		if err := checkID("id", id); err != nil {
			return err
		}
		if !c.by.MayTask(id) {
			return problem.New(problem.NotFound, "there is no task %s", id)
		}
		c.id = id
	}
	if c.route.Scope == OneSchedule {
		name := c.r.PathValue("name")
		if err := events.ValidateSchedule(name); err != nil {
			return invalid("name", "%s", err)
		}
		if !c.by.MayTask(events.ScheduleRecord(name)) {
			return problem.New(problem.NotFound, "there is no schedule %s", name)
		}
	}
	if err := c.checkHeaders(); err != nil {
		return err
	}
	return c.checkNoBody()
}

// checkHeaders refuses headers that would not do what their sender believes.
func (c *Call) checkHeaders() error {
	changes := c.route.Method != http.MethodGet
	refused := map[string]bool{matchHeader: !c.route.Matched, "If-Unmodified-Since": true, "If-None-Match": changes}
	for name, is := range refused {
		if is && c.r.Header.Get(name) != "" {
			return invalid(name, "changes under a condition are not supported")
		}
	}
	if changes && !c.route.Keyed && len(c.r.Header.Values(keyHeader)) > 0 {
		return invalid(keyHeader, "this route takes none: what is repeated is done again")
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

// checkQuery refuses unknown parameters, and repeated ones.
func (c *Call) checkQuery() error {
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return problem.New(problem.Malformed, "query: %s", err)
	}
	c.query = query
	return c.checkParams(query, c.route.Query, "the route has no such parameter")
}
