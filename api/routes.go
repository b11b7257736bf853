package api

import (
	"math"
	"net/http"
	"slices"
	"strings"

	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/api/view"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/ledger/exportform"
	"taskledger/task"
)

const (
	// maxSubmit takes the largest parameters, in a form that doubles them, and the rest of a submit.
	maxSubmit = 2*events.MaxPayloadBytes + 8<<10
	// maxBatch bounds the submits of a batch together.
	maxBatch = maxBody
	// maxChange takes 1,000 ids, or a filter.
	maxChange = 256 << 10
	maxReason = 4 << 10
)

const lines = "application/x-ndjson"

var waits = Param{Name: "wait", Does: "Waits so long for the outcome, such as 30s, and 60s at most.", Is: Period}

// routes returns the routes of the engine.
func routes(client operations.Client, node *process) []Route {
	change := changes{operator: client, reader: client, works: client.Works}
	return slices.Concat(
		submissions{client}.routes(),
		tasks{reader: client, historian: client, submitter: client}.routes(),
		change.routes(),
		change.verbRoutes(),
		behaviors{
			reader:   client,
			observer: client,
			operator: client,
			kept:     &keptCounts{},
		}.routes(),
		cluster{observer: client, historian: client}.routes(),
		journals{reader: client, historian: client}.routes(),
		node.routes(),
	)
}

// routes returns the routes by which tasks are submitted.
func (s submissions) routes() []Route {
	return []Route{
		{
			Method:  http.MethodPost,
			Pattern: "/v1/tasks",
			Summary: "Submit a task. 200 with its outcome, or 202 where it has none yet",
			Role:    token.Submitter,
			Scope:   ItsTasks,
			Class:   Poll,
			MaxBody: maxSubmit,
			Keyed:   true,
			Query:   []Param{waits},
			In:      Submit{},
			Out:     Submitted{},
			Status:  []int{http.StatusAccepted, http.StatusOK},
			Serve:   s.submit,
		},
		{
			Method:  http.MethodPost,
			Pattern: "/v1/tasks:batch",
			Summary: "Submit up to 1,000 tasks, each with an outcome of its own",
			Role:    token.Submitter,
			Scope:   ItsTasks,
			MaxBody: maxBatch,
			Keyed:   true,
			In:      Batch{},
			Out:     BatchAnswer{},
			Serve:   s.submitMany,
		},
	}
}

// routes returns the routes that show tasks.
func (s tasks) routes() []Route {
	return []Route{
		{
			Method:  http.MethodGet,
			Pattern: "/v1/tasks",
			Summary: "List tasks, newest first",
			Role:    token.Viewer,
			Scope:   ItsTasks,
			Large:   true,
			Query:   listParams(),
			Out:     TaskPage{},
			Serve:   s.list,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/v1/tasks/{id}",
			Summary: "Show a task",
			Role:    token.Viewer,
			Scope:   OneTask,
			Class:   Poll,
			Query: []Param{
				waits,
				{Name: "forgotten", Does: "Looks in the journal and the archive, too.", Is: Boolean},
				{Name: "at", Does: "Shows the task as it was at this time, in RFC 3339.", Is: Instant},
				{
					Name:  "seq",
					Does:  "Shows the task as it was after the event of this number, 1 to 100,000.",
					Is:    Integer,
					Least: 1,
					Most:  100_000,
				},
			},
			Out:    task.Task{},
			Status: []int{http.StatusOK, http.StatusAccepted, http.StatusNotModified},
			Serve:  s.get,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/v1/tasks/{id}/history",
			Summary: "Show the events of a task",
			Role:    token.Viewer,
			Scope:   OneTask,
			Large:   true,
			Query: []Param{
				{
					Name:    "order",
					Does:    "Shows the oldest event first, or the newest.",
					Among:   []string{"oldest", "newest"},
					Default: "oldest",
				},
				limitOf("events", ledger.MaxHistoryPage),
				{Name: "cursor", Does: "Continues after a page, by the cursor that it has."},
				{Name: "states", Does: "Shows the task after each event, too, oldest first, " +
					"where at most 100,000 come before the page.", Is: Boolean},
			},
			Out:   HistoryPage{},
			Serve: s.history,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/v1/tasks/{id}/explain",
			Summary: "Say why a task does not run",
			Role:    token.Viewer,
			Scope:   OneTask,
			Out:     engine.Explanation{},
			Serve:   s.explain,
		},
	}
}

// routes returns the routes that change tasks, other than by one verb.
func (s changes) routes() []Route {
	return []Route{
		{
			Method:  http.MethodDelete,
			Pattern: "/v1/tasks/{id}",
			Summary: "Delete a task that does not run",
			Role:    token.Operator,
			Scope:   OneTask,
			Matched: true,
			Status:  []int{http.StatusNoContent},
			Serve:   s.operate(operations.Delete),
		},
		{
			Method:  http.MethodPost,
			Pattern: "/v1/tasks:change",
			Summary: "Change up to 1,000 tasks by their ids",
			Role:    token.Operator,
			Scope:   ItsTasks,
			MaxBody: maxChange,
			In:      Change{},
			Out:     ChangeAnswer{},
			Serve:   s.change,
		},
		{
			Method:  http.MethodPost,
			Pattern: "/v1/tasks:change-matching",
			Summary: "Change all tasks that a filter selects, or count them",
			Role:    token.Operator,
			Scope:   ItsTasks,
			Class:   Stream,
			MaxBody: maxChange,
			In:      ChangeMatching{},
			Out:     ChangeReport{},
			Type:    lines,
			Serve:   s.changeMatching,
		},
	}
}

// verbRoutes returns a route for each verb of a task.
func (s changes) verbRoutes() (all []Route) {
	for verb, does := range verbs {
		r := Route{
			Method:  http.MethodPost,
			Pattern: "/v1/tasks/{id}/" + string(verb),
			Summary: does,
			Role:    token.Operator,
			Scope:   OneTask,
			Matched: true,
			Status:  []int{http.StatusNoContent},
			Serve:   s.operate(verb),
		}
		if verb == operations.Cancel || verb == operations.Suspend {
			r.MaxBody, r.In, r.Optional = maxReason, Reason{}, true
		}
		if verb == operations.Suspend { // of a work it waits for its open buckets
			r.Class, r.Out, r.Serve = Poll, SuspendedWork{}, s.suspend
			r.Status = append(r.Status, http.StatusOK, http.StatusAccepted)
		}
		if verb == operations.Retry {
			r.Status, r.Out = append(r.Status, http.StatusOK), ChangedTask{}
		}
		all = append(all, r)
	}
	return all
}

// routes returns the routes of behaviors.
func (s behaviors) routes() []Route {
	return []Route{
		{
			Method:  http.MethodGet,
			Pattern: "/v1/behaviors",
			Summary: "Count tasks by behavior, status and substatus, and show what is paused",
			Role:    token.Viewer,
			Scope:   ItsTasks,
			Query: []Param{{
				Name: "behavior",
				Does: "Counts this behavior alone; without it those beyond 500 in a shard are counted together, without a name.",
			}},
			Out:   Behaviors{},
			Serve: s.list,
		},
		{
			Method:   http.MethodPost,
			Pattern:  "/v1/behaviors/{behavior}/pause",
			Summary:  "Pause a behavior",
			Role:     token.Operator,
			Scope:    Everything,
			MaxBody:  maxReason,
			In:       PauseRequest{},
			Optional: true,
			Status:   []int{http.StatusNoContent},
			Serve:    s.pause(operations.Pause),
		},
		{
			Method:  http.MethodPost,
			Pattern: "/v1/behaviors/{behavior}/unpause",
			Summary: "Let a behavior go on",
			Role:    token.Operator,
			Scope:   Everything,
			Status:  []int{http.StatusNoContent},
			Serve:   s.pause(operations.Unpause),
		},
	}
}

// routes returns the routes that tell of nodes and shards.
func (s cluster) routes() []Route {
	return []Route{
		{
			Method:  http.MethodGet,
			Pattern: "/v1/nodes",
			Summary: "Show the nodes",
			Role:    token.Viewer,
			Scope:   Everything,
			Out:     Nodes{},
			Serve:   s.nodes,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/v1/shards",
			Summary: "Show the shards and their owners",
			Role:    token.Viewer,
			Scope:   Everything,
			Query:   []Param{{Name: "figures", Does: "Shows what the owners have committed, too, in numbers.", Is: Boolean}},
			Out:     Shards{},
			Serve:   s.shards,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/v1/checkpoint",
			Summary: "Tell the chain hashes of all journals",
			Role:    token.Viewer,
			Scope:   Everything,
			Out:     Checkpoint{},
			Serve:   s.checkpoint,
		},
	}
}

// routes returns the routes that read journals.
func (s journals) routes() []Route {
	return []Route{
		{
			Method:  http.MethodGet,
			Pattern: "/v1/export",
			Summary: "Write the history of a task, or a whole shard, for verify",
			Role:    token.Viewer,
			Scope:   ItsTasks,
			Class:   Stream,
			Query: []Param{
				{Name: "task", Does: "Names a task, whose history is written."},
				{
					Name: "shard",
					Does: "Numbers a shard, which is written instead of a task.",
					Is:   Integer,
					Most: math.MaxUint16,
				},
			},
			Out:   either{exportform.Header{}, exportform.Line{}},
			Type:  lines,
			Serve: s.export,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/v1/replay",
			Summary: "Tell the events of the cluster in the order of their commits",
			Role:    token.Viewer,
			Scope:   ItsTasks,
			Class:   Stream,
			Query: []Param{
				{
					Name: "from",
					Does: "Selects events of this time and later, in RFC 3339, but for shards that after names.",
					Is:   Instant,
				},
				{Name: "after", Does: "Lists positions with commas, one of each shard, of which the events after it are told."},
				{Name: "to", Does: "Selects events before this time, in RFC 3339.", Is: Instant},
				{Name: "behavior", Does: "Selects events of tasks of this behavior."},
				{Name: "kind", Does: "Selects events of these kinds, with commas, such as Paused,Unpaused.", Is: Kinds},
			},
			Out:   view.Event{},
			Type:  lines,
			Serve: s.replay,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/v1/journal",
			Summary: "Show the entries of a shard in their stored form, for a ledger elsewhere",
			Role:    token.Viewer,
			Scope:   Everything,
			Large:   true,
			Query: []Param{
				{
					Name: "shard",
					Does: "Numbers the shard.",
					Is:   Integer,
					Most: math.MaxUint16,
				},
				{Name: "task", Does: "Names a task, whose shard is shown, and where events of the task are."},
				{
					Name:    "from",
					Does:    "Numbers the first entry of the page.",
					Is:      Integer,
					Least:   1,
					Default: 1,
				},
				{
					Name:    "limit",
					Does:    "Limits a page to 0 to 1,000 entries.",
					Is:      Integer,
					Most:    maxEntries,
					Default: maxEntries,
				},
				{Name: "archive", Does: "Shows the entries that the archive has, and no others.", Is: Boolean},
				{Name: "head", Does: "Shows what the owner has committed, too, with the digest of its state.", Is: Boolean},
			},
			Out:   JournalPage{},
			Serve: s.page,
		},
	}
}

// routes returns the routes of this process alone.
func (p *process) routes() []Route {
	return []Route{
		{
			Method:  http.MethodGet,
			Pattern: "/v1/health",
			Summary: "Say that this process answers",
			Role:    token.Nobody,
			Out:     Health{},
			Serve:   p.health,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/v1/version",
			Summary: "Tell the version of this node",
			Role:    token.Nobody,
			Out:     Version{},
			Serve:   p.version,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/v1/metrics",
			Summary: "Tell what this node measures, for Prometheus",
			Role:    token.Viewer,
			Scope:   Everything,
			Type:    "text/plain",
			Serve:   p.metrics,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/v1/ready",
			Summary: "Say whether this node serves, and to who shows a token why not",
			Role:    token.Nobody,
			Scope:   None,
			Out:     Health{},
			Status:  []int{http.StatusOK, http.StatusServiceUnavailable},
			Serve:   p.ready,
		},
		{
			Method:  http.MethodGet,
			Pattern: "/openapi.json",
			Summary: "This document",
			Role:    token.Viewer,
			Scope:   None,
			Type:    "application/vnd.oai.openapi+json",
			Serve:   p.openAPI,
		},
	}
}

// limitOf returns the parameter by which a page has 100 rows, or another number up to a thousand.
func limitOf(what string, most int64) Param {
	return Param{
		Name:    "limit",
		Does:    "Limits a page to 1 to 1,000 " + what + ".",
		Is:      Integer,
		Least:   1,
		Most:    most,
		Default: 100,
	}
}

// listParams returns the parameters of the list of tasks: those of its pages, and the fields of a filter.
func listParams() []Param {
	names, does := task.FilterFields()
	params := []Param{
		limitOf("tasks", 1000),
		{Name: "cursor", Does: "Continues after a page, by the cursor that it has."},
	}
	for i, name := range names {
		p := Param{Name: name, Does: "Selects tasks by this: " + does[i] + "."}
		switch {
		case name == "status":
			p.Among = statusNames()
		case name == "substatus":
			p.Among = task.Substatuses()
		case name == "work":
			p.Is, p.Among = Boolean, []string{"true"}
		case strings.HasSuffix(name, "-from") || strings.HasSuffix(name, "-to"):
			p.Is = Instant
		}
		params = append(params, p)
	}
	return params
}

// statusNames returns the names of all statuses.
func statusNames() (all []string) {
	for _, s := range []task.Status{task.Created, task.Running, task.Success, task.Failure} {
		all = append(all, s.String())
	}
	return all
}
