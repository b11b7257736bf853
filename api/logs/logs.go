// Package logs is the HTTP API of what tasks write while they run, below /v1/tasks/{id}.
//
// It keeps no state: it asks as any client does, and judges whether the token of the caller is for the behavior of the
// task.
package logs

import (
	"math"
	"net/http"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/tasklog"
)

// front answers requests.
type front struct{ logs operations.Logs }

// Routes returns the routes of the logs that the client reaches.
func Routes(l operations.Logs) []api.Route {
	f := &front{l}
	lines := []api.Param{
		{Name: "start", Does: "Selects lines of this time and later, in RFC 3339.", Is: api.Instant},
		{Name: "end", Does: "Selects lines of this time and earlier, in RFC 3339.", Is: api.Instant},
		{
			Name:  "attempt",
			Does:  "Selects lines of the attempt of this number, 1 or more.",
			Is:    api.Integer,
			Least: 1,
			Most:  math.MaxUint32,
		},
		{
			Name:    "level",
			Does:    "Selects errors alone, gaps among them, or with info all lines.",
			Among:   []string{"info", "error"},
			Default: "info",
		},
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
				{
					Name:    "limit",
					Does:    "Limits a page to 1 to 1,000 lines.",
					Is:      api.Integer,
					Least:   1,
					Most:    tasklog.MaxPageLines,
					Default: 100,
				},
				{Name: "cursor", Does: "Continues after a page, by the cursor that it has, also where it reached the end."},
				{Name: "wait", Does: "Waits so long for a line beyond the cursor, such as 30s, and 60s at most.", Is: api.Period},
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
