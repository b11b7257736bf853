// Package schedules is the HTTP API of schedules, below /v1/schedules.
//
// It keeps no state: it asks as any client does, and judges whether the token of the caller is for a schedule. The
// prefix of a token limits it by the name of the schedule, its behaviors by that of the runs. Whoever sets a schedule,
// or lets it have runs, must be allowed to submit tasks of its behavior.
package schedules

import (
	"net/http"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/schedule"
)

const (
	// root is the path of the list.
	root = "/v1/schedules"
	// maxSet takes the largest parameters, in a form that doubles them, and the rest of a definition.
	maxSet    = 2*events.MaxScheduleParamBytes + 8<<10
	maxReason = 4 << 10
	maxRange  = 1 << 10
)

// front answers requests.
type front struct {
	schedules operations.Schedules
	backfills operations.Backfills
}

// Routes returns the routes of the schedules that the client reaches.
func Routes(s operations.Schedules, b operations.Backfills) []api.Route {
	f := &front{schedules: s, backfills: b}
	// one returns a route of one schedule.
	one := func(method, path, summary string, role token.Role, serve func(*api.Call) error) api.Route {
		return api.Route{
			Method:  method,
			Pattern: root + "/{name}" + path,
			Summary: summary,
			Role:    role,
			Scope:   api.OneSchedule,
			Serve:   serve,
		}
	}
	steer := func(method, path, summary string, role token.Role, verb operations.ScheduleVerb) api.Route {
		r := one(method, path, summary, role, f.steer(verb))
		r.Matched, r.Status = true, []int{http.StatusNoContent}
		return r
	}
	list := api.Route{
		Method:  http.MethodGet,
		Pattern: root,
		Summary: "List schedules by name",
		Role:    token.Viewer,
		Scope:   api.ItsTasks,
		Large:   true,
		Query: []api.Param{
			{Name: "after", Does: "Continues after a schedule, by the member next of the page before."},
			{
				Name:    "limit",
				Does:    "Limits a page to 1 to 100 schedules.",
				Is:      api.Integer,
				Least:   1,
				Most:    maxPage,
				Default: maxPage,
			},
			{Name: "prefix", Does: "Selects schedules whose names begin so."},
			{Name: "behavior", Does: "Selects schedules of this behavior."},
			{Name: "paused", Does: "Selects schedules that are paused.", Is: api.Boolean},
		},
		Out:   Page{},
		Serve: f.list,
	}
	show := one(http.MethodGet, "", "Show a schedule", token.Viewer, f.show)
	show.Out = schedule.Schedule{}
	set := one(http.MethodPut, "", "Make a schedule, or change it", token.Submitter, f.set)
	set.MaxBody, set.Matched, set.In, set.Out = maxSet, true, schedule.Form{}, Set{}
	set.Status = []int{http.StatusOK, http.StatusCreated}
	reason := []api.Param{{Name: "reason", Does: "Gives the reason, for the history, in 256 bytes at most."}}
	uuids := api.Param{Name: "uuids", Does: "Names the runs by UUIDs, as those of collections.", Is: api.Boolean}
	set.Query = append([]api.Param{uuids}, reason...)
	next := one(http.MethodGet, "/next", "Tell the next ticks", token.Viewer, f.next)
	next.Query = []api.Param{{
		Name:    "n",
		Does:    "Limits the answer to 1 to 100 ticks.",
		Is:      api.Integer,
		Least:   1,
		Most:    100,
		Default: 10,
	}}
	next.Out = Ticks{}
	run := one(http.MethodPost, "/run", "Make a run now, or share one that has not ended", token.Submitter, f.run)
	run.Keyed, run.Matched, run.Out, run.Status = true, true, api.Submitted{}, []int{http.StatusAccepted}
	run.Query = []api.Param{{
		Name:  "priority",
		Does:  "Gives the run a priority instead of that of the schedule.",
		Is:    api.Integer,
		Least: 1,
		Most:  events.MaxPriority,
	}}
	fill := one(http.MethodPost, "/backfill", "Give ticks of the past their runs", token.Submitter, f.backfill)
	fill.MaxBody, fill.Matched, fill.In, fill.Out = maxRange, true, Range{}, Backfill{}
	pause := steer(http.MethodPost, "/pause", "Keep a schedule from deciding ticks", token.Operator,
		operations.PauseSchedule)
	pause.MaxBody, pause.In, pause.Optional = maxReason, api.Reason{}, true
	end := steer(http.MethodDelete, "/backfill", "End a backfill", token.Operator, operations.EndBackfill)
	end.Query = reason
	return []api.Route{
		list,
		show,
		set,
		next,
		run,
		fill,
		pause,
		steer(http.MethodPost, "/resume", "Let a paused schedule go on", token.Submitter, operations.ResumeSchedule),
		steer(http.MethodDelete, "", "End a schedule; its runs go on", token.Operator, operations.DeleteSchedule),
		end,
	}
}
