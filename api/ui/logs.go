package ui

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/api/view"
	"taskledger/events"
)

// linesPerPage bounds the lines of a log that a page shows.
const linesPerPage = "500"

func (u *UI) logRoutes() []api.Route {
	return []api.Route{
		{
			Method:  http.MethodGet,
			Pattern: Root + "tasks/{id}/logs",
			Summary: "Show what a task has written, as it comes",
			Role:    token.Viewer,
			Scope:   api.OneTask,
			Query: []api.Param{
				{Name: "cursor", Does: "lines after those of another page"},
				{Name: "level", Does: "error: only errors"},
				{Name: "attempt", Does: "lines of one attempt"},
				{Name: "end", Does: "true: the last page"},
			},
			Large: true,
			Serve: u.showLogs,
		},
		{
			Method:  http.MethodGet,
			Pattern: Root + "tasks/{id}/export",
			Summary: "Download the history of a task, for verify",
			Role:    token.Viewer,
			Scope:   api.OneTask,
			Class:   api.Pages,
			Type:    "application/x-ndjson",
			Serve:   u.exportTask,
		},
	}
}

// logs holds a page of a log.
type logs struct {
	ID      events.TaskID
	Lines   []view.LogLine `json:"lines"`
	Cursor  string         `json:"cursor"`
	More    bool           `json:"more"`
	Ended   bool           `json:"ended"`
	Last    bool           // tells that nothing follows, since no node has the task in memory
	From    string         // the cursor of this page
	Level   string
	Attempt string
	Wrong   string // the field of the form that is wrong; "" = none
}

func (u *UI) showLogs(c *api.Call) error {
	l := u.look(c, "Tasks", "Log of "+string(c.Task()))
	body := logs{
		ID:      c.Task(),
		From:    c.Param("cursor"),
		Level:   c.Param("level"),
		Attempt: c.Param("attempt"),
	}
	if c.Param("end") != "" {
		last, err := l.lastOf(body)
		if err != nil {
			return err
		}
		return c.Redirect(l.LogsAt(&body, last))
	}
	status := http.StatusOK
	if err := l.readLogs(&body, body.From); err != nil {
		p, refused := errors.AsType[*problem.Problem](err)
		switch {
		case refused && p.Status >= http.StatusInternalServerError:
			l.Missing = append(l.Missing, "the log: "+p.Error())
		case refused && (p.Field == "attempt" || p.Field == "level"): // the form keeps what was typed
			status, body.Wrong = p.Status, p.Field
			l.Missing = append(l.Missing, p.Error())
		default:
			return err
		}
	}
	body.Last = body.Ended && l.gone(body.ID)
	return l.showAs(status, "logs", &body)
}

// readLogs reads the page of a log after a cursor.
func (l *look) readLogs(into *logs, cursor string) error {
	ask := url.Values{"limit": {linesPerPage}}
	for name, text := range map[string]string{"cursor": cursor, "level": into.Level, "attempt": into.Attempt} {
		if text != "" {
			ask.Set(name, text)
		}
	}
	return l.get("/v1/tasks/"+pathOf(into.ID)+"/logs?"+ask.Encode(), into)
}

// gone reports whether a task is known to be in no memory. One that is there may run again, however it has ended; each
// look at the log of one that was forgotten may search the journal.
func (l *look) gone(id events.TaskID) bool {
	p, refused := errors.AsType[*problem.Problem](l.get("/v1/tasks/"+pathOf(id)+"/explain", nil))
	return refused && p.Type == problem.NotFound
}

// mostPages bounds the pages that a look for the last one reads: it stops there where the log has more, and where the
// time of the page is over.
const mostPages = 40

// lastOf returns the cursor of the last page of a log that has a line.
func (l *look) lastOf(of logs) (cursor string, err error) {
	for range mostPages {
		page := logs{ID: of.ID, Level: of.Level, Attempt: of.Attempt}
		if err := l.readLogs(&page, cursor); err != nil {
			if cursor != "" && l.late() { // it is led to the last page that was found
				return cursor, nil
			}
			return "", err
		}
		if !page.More {
			break
		}
		cursor = page.Cursor
	}
	return cursor, nil
}

// LogsAt returns the address of a page of a log after a cursor.
func (f *frame) LogsAt(of *logs, cursor string) string {
	query := url.Values{}
	for name, text := range map[string]string{"cursor": cursor, "level": of.Level, "attempt": of.Attempt} {
		if text != "" {
			query.Set(name, text)
		}
	}
	at := f.TaskAt(of.ID) + "/logs"
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	return at
}

// smallExport is the most of an export that is sent at once; a larger one is a stream.
const smallExport = 1 << 20

func (u *UI) exportTask(c *api.Call) error {
	name := fmt.Sprintf("attachment; filename=%q", pathOf(c.Task())+".jsonl")
	var kept bytes.Buffer
	var w io.Writer
	end, done := func() error { return nil }, func() {}
	defer func() { done() }()
	err := u.look(c, "Tasks", "Export").lines(api.Question{
		Path:  "/v1/export",
		Query: url.Values{"task": {string(c.Task())}},
	}, func(line []byte) error {
		if w == nil && kept.Len() > smallExport {
			c.Header().Set("Content-Disposition", name)
			w, end, done = c.Relay()
			if _, err := w.Write(kept.Bytes()); err != nil {
				return err
			}
			kept.Reset()
		}
		into := w
		if into == nil {
			into = &kept
		}
		_, err := into.Write(append(line, '\n'))
		return err
	})
	switch {
	case err != nil:
		return err
	case w != nil:
		return end()
	}
	c.Header().Set("Content-Disposition", name)
	return c.Asset("application/x-ndjson", kept.Bytes())
}
