// Package sync is the HTTP API of collections below /sync, in the form of EventNative's scheduler: their runs are tasks
// of eight keys, and their errors have the keys of its clients.
//
// It keeps no state: it asks as any client does. A run, or a collection, that the token of the caller is not for is
// told like one that is not there. Every route answers with or without a slash at its end.
//
// The routes follow the scheduler design of EventNative (Jitsu).
package sync

import (
	"net/http"
	"slices"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/collections/taskjson"
)

// Root begins the path of every route.
const Root = "/sync"

// Routes returns the routes of the collections that the client reaches.
func Routes(runs Runs, schedules Schedules) (all []api.Route) {
	f := &front{runs: runs, schedules: schedules}
	for _, r := range slices.Concat(f.runRoutes(), f.scheduleRoutes()) {
		r.Scope = api.ItsTasks
		r.Pattern = Root + r.Pattern
		all = append(all, r)
		r.Pattern += "/{$}"
		all = append(all, r)
	}
	return all
}

// The parameters that routes have in common.
var (
	periodParams = []api.Param{
		{Name: "start", Does: "Selects what is of this time and later, in RFC 3339.", Is: api.Instant},
		{Name: "end", Does: "Selects what is of this time and earlier, in RFC 3339.", Is: api.Instant},
	}
	pageParams = []api.Param{
		{
			Name:  "limit",
			Does:  "Limits a page to 1 to 1,000; without it the answer has all, without pages.",
			Is:    api.Integer,
			Least: 1,
			Most:  maxLimit,
		},
		{Name: "cursor", Does: "Continues after a page, by the cursor that it has."},
	}
	statusParams = []api.Param{{
		Name:  "status",
		Does:  "Selects runs of this status, in upper or lower case.",
		Among: []string{"SCHEDULED", "RUNNING", "FAILED", "SUCCESS"},
	}}
	sourceParams = []api.Param{
		{Name: "source", Does: "Names the source."},
		{Name: "collection", Does: "Names the collection of the source."},
	}
)

// required returns the parameters as those that a request must have.
func required(params []api.Param) []api.Param {
	all := slices.Clone(params)
	for i := range all {
		all[i].Required = true
	}
	return all
}

// runRoutes returns the routes of runs, below Root.
func (f *front) runRoutes() []api.Route {
	return []api.Route{
		{
			Method:  http.MethodPost,
			Pattern: "/tasks",
			Summary: "Make a run of a collection, or tell the one that has not ended",
			Role:    token.Submitter,
			Keyed:   true,
			Query:   required(sourceParams),
			Out:     Ordered{},
			Status:  []int{http.StatusCreated, http.StatusOK},
			Serve:   f.run,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/tasks",
			Summary: "List the runs of a source by when they were created, newest first",
			Role:    token.Viewer,
			Class:   api.Pages,
			Large:   true,
			Query: slices.Concat(required(sourceParams[:1]), sourceParams[1:], required(periodParams),
				statusParams, pageParams),
			Out:   Tasks{},
			Serve: f.list,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/tasks/{task}",
			Summary: "Show a run",
			Role:    token.Viewer,
			Out:     taskjson.Task{},
			Serve:   f.show,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/tasks/{task}/logs",
			Summary: "Show what a run has written, by attempt, oldest first",
			Role:    token.Viewer,
			Class:   api.Pages,
			Large:   true,
			Query:   slices.Concat(periodParams, pageParams),
			Out:     Logs{},
			Serve:   f.logs,
		},
		{
			Method:  http.MethodPost,
			Pattern: "/tasks/{task}/cancel",
			Summary: "Cancel a run that has not ended",
			Role:    token.Submitter,
			Out:     Cancelled{},
			Serve:   f.cancel,
		},
	}
}

// scheduleRoutes returns the routes of collections, below Root.
func (f *front) scheduleRoutes() []api.Route {
	all := []api.Route{
		{
			Method:  http.MethodGet,
			Pattern: "/schedules",
			Summary: "List the collections by id, each with its next five ticks",
			Role:    token.Viewer,
			Class:   api.Pages,
			Large:   true,
			Out:     ScheduleList{},
			Serve:   f.listSchedules,
		},
	}
	for verb, does := range map[operations.ScheduleVerb]string{
		operations.PauseSchedule:  "Keep a collection from having runs of its ticks",
		operations.ResumeSchedule: "Let a paused collection go on",
	} {
		all = append(all, api.Route{
			Method:  http.MethodPost,
			Pattern: "/schedules/{source}/{collection}/" + string(verb),
			Summary: does,
			Role:    token.Operator,
			Out:     Schedule{},
			Serve:   f.steer(verb),
		})
	}
	return all
}
