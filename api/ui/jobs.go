package ui

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/api/ui/jobs"
	"taskledger/api/ui/sessions"
	"taskledger/events"
	"taskledger/task"
)

func (u *UI) jobRoutes() []api.Route {
	return []api.Route{
		{
			Method:  http.MethodGet,
			Pattern: Root + "matching",
			Summary: "Count the tasks that a filter selects, before they are changed",
			Role:    token.Operator,
			Scope:   api.ItsTasks,
			Query: append(filterParams(), api.Param{Name: "operation"}, api.Param{Name: "reason"},
				api.Param{Name: "cursor", Does: "where a change has ended that is to go on"}),
			Serve: u.countMatching,
		},
		{
			Method:  http.MethodPost,
			Pattern: Root + "jobs",
			Summary: "Begin to change the tasks that a filter selects",
			Role:    token.Operator,
			Scope:   api.ItsTasks,
			MaxBody: maxJob,
			Form: append(filterParams(), api.Param{Name: "operation"}, api.Param{Name: "reason"},
				api.Param{Name: "counted"}, api.Param{Name: "exactly"}, api.Param{Name: "once"}, api.Param{Name: "cursor"}),
			Serve: u.beginJob,
		},
		{
			Method:  http.MethodGet,
			Pattern: Root + "jobs",
			Summary: "List the changes that the caller has begun on this node",
			Role:    token.Operator,
			Serve:   u.listJobs,
		},
		{
			Method:  http.MethodGet,
			Pattern: Root + "jobs/{job}",
			Summary: "Show how far a change has come",
			Role:    token.Operator,
			Serve:   u.showJob,
		},
		{
			Method:  http.MethodPost,
			Pattern: Root + "jobs/{job}/stop",
			Summary: "Stop a change",
			Role:    token.Operator,
			Serve:   u.stopJob,
		},
	}
}

// Run runs the changes that pages begin and that outlive their requests, until ctx ends. It then ends those under
// way, waits for them, and returns nil. While Run does not run, pages say that no change begins.
func (u *UI) Run(ctx context.Context) error { return u.jobs.Run(ctx) }

// matchingIn reads what is asked of all tasks that match.
func matchingIn(values url.Values) (ask api.ChangeMatching, does action, err error) {
	if does, err = actionOf(values); err != nil {
		return ask, does, err
	}
	ask = api.ChangeMatching{
		Operation: does.Operation,
		Filter:    map[string]string{},
		Cursor:    strings.TrimSpace(values.Get("cursor")),
	}
	if does.Operation == operations.Cancel { // the only one of them that takes one
		ask.Reason = strings.TrimSpace(values.Get("reason"))
	}
	for _, p := range filterParams() {
		if text := values.Get(p.Name); text != "" {
			ask.Filter[p.Name] = text
		}
	}
	return ask, does, nil
}

// fieldsOf lists the fields of a filter in the order of pages.
func fieldsOf(filter map[string]string) (all []filterField) {
	for _, p := range filterParams() {
		if text := filter[p.Name]; text != "" {
			all = append(all, filterField{Name: p.Name, Value: text})
		}
	}
	return all
}

// counted tells how many tasks match, before all of them are changed.
type counted struct {
	Does     action
	Fields   []filterField
	Reason   string
	Matching int64
	Left     int64 // of them that have just changed, or that the token is not for
	Partial  bool  // there are more than were counted in time
	Rows     []task.Count
	Once     string // makes a form that is sent twice one order
	Cursor   string // where a change has ended that is to go on, of which nothing is counted; "" = it begins anew
	List     string // address of the tasks
}

func (u *UI) countMatching(c *api.Call) error {
	ask, does, err := matchingIn(c.Request().URL.Query())
	if err != nil {
		return err
	}
	l := u.look(c, "Tasks", does.Label+" all that match")
	var told api.ChangeReport
	if ask.Cursor == "" {
		told, err = l.count(ask)
	}
	if err != nil {
		return err
	}
	body := counted{
		Does:     does,
		Fields:   fieldsOf(ask.Filter),
		Reason:   ask.Reason,
		Matching: told.Matched - told.Left,
		Left:     told.Left,
		Partial:  !told.Done,
		Rows:     told.Counts,
		Once:     rand.Text(),
		Cursor:   ask.Cursor,
		List:     listOf(ask.Filter),
	}
	l.lacks("tasks", told.Missing)
	return l.show("matching", body)
}

// listOf returns the address of the tasks that a filter selects.
func listOf(filter map[string]string) string {
	query := url.Values{}
	for name, text := range filter {
		query.Set(name, text)
	}
	return Root + "tasks?" + query.Encode()
}

// count counts the tasks that match, as far as it comes in the time of the page.
func (l *look) count(ask api.ChangeMatching) (last api.ChangeReport, err error) {
	ask.DryRun, ask.Reason = true, ""
	ctx, cancel := l.bounded()
	defer cancel()
	begun := false
	err = l.api.Lines(ctx, api.Question{
		Method: http.MethodPost,
		Path:   "/v1/tasks:change-matching",
		Body:   ask,
	}, func(line []byte) error {
		var told api.ChangeReport
		if err := json.Unmarshal(line, &told); err != nil {
			return fmt.Errorf("read a report: %w", err)
		}
		last, begun = told, true
		return nil
	})
	switch {
	case err != nil && ctx.Err() == nil, err != nil && !begun:
		return last, err
	case last.Problem != nil && ctx.Err() == nil:
		return last, last.Problem
	}
	return last, nil
}

func (u *UI) beginJob(c *api.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	ask, _, err := matchingIn(form)
	if err != nil {
		return err
	}
	o := jobs.Order{ChangeMatching: ask, Key: form.Get("once")}
	if text := form.Get("counted"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			p := problem.New(problem.Invalid, "counted: %.32q: want a number", text)
			p.Field = "counted"
			return p
		}
		if o.Counted = &n; form.Get("exactly") != "" && o.Cursor == "" {
			o.Expected = &n
		}
	}
	if len(ask.Filter) == 0 { // a job would only say the same later
		p := problem.New(problem.Invalid, "filter: it is empty: want at least one field, as all tasks would match")
		p.Field = "filter"
		return p
	}
	id, err := u.jobs.Begin(sessions.Principal(c.Token()), c.Client(), o)
	switch {
	case errors.Is(err, jobs.ErrTooMany):
		p := problem.New(problem.TooMany, "%s", err)
		p.RetryAfter = 1
		return p
	case err != nil:
		return problem.New(problem.Unavailable, "%s", err)
	}
	return c.Redirect(jobAt(id))
}

func jobAt(id string) string { return Root + "jobs/" + url.PathEscape(id) }

// job shows a change of all that match.
type job struct {
	jobs.Job
	Does   action
	Fields []filterField
	List   string // address of the tasks
	At     string // its own
	// Elsewhere is the address of a page, of any node, that offers to go on from where the job is; "" = nothing is left,
	// or nothing tells where it is, or the address is longer than maxAddress.
	Elsewhere string
}

// maxAddress leaves most of the 16 KiB that a request may have before its body to cookies and the rest.
const maxAddress = 10 << 10

func jobOf(is jobs.Job) job {
	shown := job{
		Job:    is,
		Fields: fieldsOf(is.Order.Filter),
		List:   listOf(is.Order.Filter),
		At:     jobAt(is.ID),
	}
	if is.State != jobs.Done && is.Report.Cursor != "" {
		query := url.Values{"operation": {string(is.Order.Operation)}, "cursor": {is.Report.Cursor}}
		for _, f := range shown.Fields {
			query.Set(f.Name, f.Value)
		}
		if is.Order.Reason != "" {
			query.Set("reason", is.Order.Reason)
		}
		if at := Root + "matching?" + query.Encode(); len(at) <= maxAddress {
			shown.Elsewhere = at
		}
	}
	for _, a := range actions {
		if a.Operation == is.Order.Operation {
			shown.Does = a
		}
	}
	return shown
}

// BeganAt and EndedAt return the moments of a job as pages show them.
func (j job) BeganAt() events.Millis { return events.MillisOf(j.Began) }

// EndedAt is described at BeganAt.
func (j job) EndedAt() events.Millis { return events.MillisOf(j.Ended) }

// Runs reports whether the job goes on.
func (j job) Runs() bool { return j.State == jobs.Runs }

// GoOn returns the order of what is left, for a form; nil = there is none.
func (j job) GoOn() *jobs.Order {
	next, left := j.GoesOn()
	if !left {
		return nil
	}
	return &next
}

// Looked counts the tasks that the job has dealt with.
func (j job) Looked() int64 { return j.Report.Matched }

// Counted returns how many tasks were counted before, 0 where nobody has.
func (j job) Counted() int64 {
	if j.Order.Counted == nil {
		return 0
	}
	return max(*j.Order.Counted, j.Report.Matched)
}

func (u *UI) listJobs(c *api.Call) error {
	var all []job
	for _, is := range u.jobs.List(sessions.Principal(c.Token())) {
		all = append(all, jobOf(is))
	}
	return u.look(c, "Tasks", "Changes of all that match").show("jobs", all)
}

func (u *UI) showJob(c *api.Call) error {
	is, has := u.jobs.Get(sessions.Principal(c.Token()), c.Path("job"))
	if !has {
		return noJob()
	}
	shown := jobOf(is)
	return u.look(c, "Tasks", shown.Does.Label+" all that match").show("job", shown)
}

func noJob() error {
	return problem.New(problem.NotFound, "this node knows of no such change of yours: the node that runs it keeps it for "+
		"an hour after its end, as long as fewer than 20 of yours and 200 in all follow, and ends it with itself. "+
		"The history of each task tells whether it was changed")
}

func (u *UI) stopJob(c *api.Call) error {
	id := c.Path("job")
	if !u.jobs.Stop(sessions.Principal(c.Token()), id) {
		return noJob()
	}
	return c.Redirect(jobAt(id))
}
