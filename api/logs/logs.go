// Package logs is the HTTP API of what tasks write while they run, below /v1/tasks/{id}.
//
// It keeps no state: it asks as any client does, and judges whether the token of the caller is for the behavior of the
// task.
package logs

import (
	"net/http"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/token"
)

// front answers requests.
type front struct{ logs operations.Logs }

// Routes returns the routes of the logs that the client reaches.
func Routes(l operations.Logs) []api.Route {
	f := &front{l}
	lines := []api.Param{
		{Name: "start", Does: "lines of this time and later, in RFC 3339", Is: api.Instant},
		{Name: "end", Does: "lines of this time and earlier, in RFC 3339", Is: api.Instant},
		{Name: "attempt", Does: "lines of the attempt of this number alone, 1 or more", Is: api.Integer},
		{Name: "level", Does: "error: only errors, gaps among them; default info: all", Among: []string{"info", "error"}},
	}
	return []api.Route{
		{
			Method:  http.MethodGet,
			Pattern: "/v1/tasks/{id}/logs",
			Summary: "Show what a task has written, by attempt, oldest first",
			Role:    token.Viewer,
			Scope:   api.OneTask,
			Class:   api.Poll,
			Large:   true,
			Query: append([]api.Param{
				{Name: "limit", Does: "most lines: 1 to 1,000, default 100", Is: api.Integer},
				{Name: "cursor", Does: "that of the page before, also of one that reached the end"},
				{Name: "wait", Does: "time to wait for a line beyond the cursor, such as 30s; 60s at most"},
			}, lines...),
			Out:   Page{},
			Serve: f.page,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/v1/tasks/{id}/logs.txt",
			Summary: "Write all that a task has written as text: time, level, attempt and message of a line each",
			Role:    token.Viewer,
			Scope:   api.OneTask,
			Class:   api.Pages,
			Large:   true,
			Query:   lines,
			Type:    "text/plain; charset=utf-8",
			Serve:   f.text,
		},
	}
}
