package api

import (
	"net/http"

	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/api/view"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/ledger/exportform"
	"taskledger/projection/listing"
)

const (
	// maxSubmit takes the largest parameters, in a form that doubles them, and the rest of a submit.
	maxSubmit = 2*events.MaxPayloadBytes + 8<<10
	// maxBatch bounds the submits of a batch together.
	maxBatch = 4 << 20
	// maxChange takes 1,000 ids, or a filter.
	maxChange = 256 << 10
	maxReason = 4 << 10
)

const lines = "application/x-ndjson"

var waits = Param{"wait", "time to wait for the outcome, such as 30s; 60s at most"}

// routes are those of the engine.
func (a *API) routes() []Route {
	get, post := http.MethodGet, http.MethodPost
	accepted := []int{http.StatusAccepted, http.StatusOK}
	all := []Route{
		{Method: post, Pattern: "/v1/tasks", Role: token.Submitter, Scope: ItsTasks, Class: Poll, MaxBody: maxSubmit, Keyed: true, Query: []Param{waits},
			In: Submit{}, Out: Submitted{}, Status: accepted, Summary: "Submit a task. 200 with its outcome, or 202 where it has none yet", Serve: (*Call).submit},
		{Method: post, Pattern: "/v1/tasks:batch", Role: token.Submitter, Scope: ItsTasks, MaxBody: maxBatch, Keyed: true,
			In: Batch{}, Out: BatchAnswer{}, Summary: "Submit up to 1,000 tasks, each with an outcome of its own", Serve: (*Call).submitMany},
		{Method: get, Pattern: "/v1/tasks", Role: token.Viewer, Scope: ItsTasks, Large: true, Query: listParams(),
			Out: TaskPage{}, Summary: "List tasks, newest first", Serve: (*Call).list},
		{Method: get, Pattern: "/v1/tasks/{id}", Role: token.Viewer, Scope: OneTask, Class: Poll, Query: []Param{waits,
			{"forgotten", "true: look in the journal and the archive, too"}, {"at", "as it was at this time, in RFC 3339"}, {"seq", "as it was after the event of this number, 1 to 100,000"}},
			Out: view.Task{}, Status: []int{http.StatusOK, http.StatusAccepted, http.StatusNotModified}, Summary: "Show a task", Serve: (*Call).get},
		{Method: get, Pattern: "/v1/tasks/{id}/history", Role: token.Viewer, Scope: OneTask, Large: true, Query: []Param{{"order", "oldest, or newest first; default oldest"},
			{"limit", "most events: 1 to 1,000, default 100"}, {"cursor", "that of the page before"}, {"states", "true: also the task after each event, oldest first, where at most 100,000 come before the page"}},
			Out: HistoryPage{}, Summary: "Show the events of a task", Serve: (*Call).history},
		{Method: get, Pattern: "/v1/tasks/{id}/explain", Role: token.Viewer, Scope: OneTask, Out: engine.Explanation{},
			Summary: "Say why a task does not run", Serve: (*Call).explain},
		{Method: http.MethodDelete, Pattern: "/v1/tasks/{id}", Role: token.Operator, Scope: OneTask, Status: []int{http.StatusNoContent},
			Summary: "Delete a task that has ended", Serve: operate(operations.Delete)},
		{Method: post, Pattern: "/v1/tasks:change", Role: token.Operator, Scope: ItsTasks, MaxBody: maxChange, In: Change{}, Out: ChangeAnswer{},
			Summary: "Change up to 1,000 tasks by their ids", Serve: (*Call).change},
		{Method: post, Pattern: "/v1/tasks:change-matching", Role: token.Operator, Scope: ItsTasks, Class: Stream, MaxBody: maxChange, Type: lines, In: ChangeMatching{}, Out: ChangeReport{},
			Summary: "Change all tasks that a filter selects, or count them", Serve: (*Call).changeMatching},
		{Method: get, Pattern: "/v1/behaviors", Role: token.Viewer, Scope: ItsTasks, Out: Behaviors{}, Summary: "Count tasks by behavior, status and substatus, and show what is paused",
			Serve: (*Call).behaviors},
		{Method: post, Pattern: "/v1/behaviors/{behavior}/pause", Role: token.Operator, Scope: Everything, MaxBody: maxReason, In: PauseRequest{}, Status: []int{http.StatusNoContent},
			Summary: "Pause a behavior", Serve: pause(operations.Pause)},
		{Method: post, Pattern: "/v1/behaviors/{behavior}/unpause", Role: token.Operator, Scope: Everything, Status: []int{http.StatusNoContent},
			Summary: "Let a behavior go on", Serve: pause(operations.Unpause)},
		{Method: get, Pattern: "/v1/nodes", Role: token.Viewer, Scope: Everything, Out: Nodes{}, Summary: "Show the nodes", Serve: (*Call).nodes},
		{Method: get, Pattern: "/v1/shards", Role: token.Viewer, Scope: Everything, Out: Shards{}, Summary: "Show the shards and their owners", Serve: (*Call).shards},
		{Method: get, Pattern: "/v1/checkpoint", Role: token.Viewer, Scope: Everything, Out: Checkpoint{}, Summary: "Tell the chain hashes of all journals", Serve: (*Call).checkpoint},
		{Method: get, Pattern: "/v1/export", Role: token.Viewer, Scope: ItsTasks, Class: Stream, Type: lines, Query: []Param{{"task", "id of a task"}, {"shard", "or the number of a shard"}},
			Out: either{exportform.Header{}, exportform.Line{}}, Summary: "Write the history of a task, or a whole shard, for verify", Serve: (*Call).export},
		{Method: get, Pattern: "/v1/replay", Role: token.Viewer, Scope: ItsTasks, Class: Stream, Type: lines,
			Query: []Param{{"from", "events of this time and later, in RFC 3339; of shards that after names it does not count"},
				{"after", "positions with commas, one of each shard: of that shard the events after it alone"}, {"to", "events before this time"}, {"behavior", "of tasks of this behavior alone"}}, Out: view.Event{}, Summary: "Tell the events of the cluster in the order of their commits",
			Serve: (*Call).replay},
		{Method: get, Pattern: "/v1/health", Role: token.Nobody, Out: Health{}, Summary: "Say that this process answers", Serve: (*Call).health},
		{Method: get, Pattern: "/v1/version", Role: token.Nobody, Out: Version{}, Summary: "Tell the version of this node", Serve: (*Call).version},
		{Method: get, Pattern: "/v1/metrics", Role: token.Viewer, Scope: Everything, Type: "text/plain", Summary: "Tell what this node measures, for Prometheus", Serve: (*Call).figures},
		{Method: get, Pattern: "/v1/ready", Role: token.Nobody, Scope: None, Out: Health{}, Status: []int{http.StatusOK, http.StatusServiceUnavailable},
			Summary: "Say whether this node serves, and to who shows a token why not", Serve: (*Call).ready},
		{Method: get, Pattern: "/openapi.json", Role: token.Viewer, Scope: None, Type: "application/vnd.oai.openapi+json", Summary: "This document", Serve: (*Call).openAPI},
	}
	for verb, does := range verbs {
		r := Route{Method: post, Pattern: "/v1/tasks/{id}/" + string(verb), Role: token.Operator, Scope: OneTask, Status: []int{http.StatusNoContent}, Summary: does, Serve: operate(verb)}
		if verb == operations.Cancel || verb == operations.Suspend {
			r.MaxBody, r.In = maxReason, Reason{}
		}
		if verb == operations.Retry {
			r.Status, r.Out = append(r.Status, http.StatusOK), ChangedTask{}
		}
		all = append(all, r)
	}
	return all
}

// verbs are what can be asked of a task, and what that does.
var verbs = map[operations.Verb]string{
	operations.Cancel:  "Cancel a task",
	operations.Suspend: "Keep a task from starting",
	operations.Resume:  "Let a suspended task go on",
	operations.Retry:   "Run a task again that has ended",
	operations.RunNow:  "Start a task now that waits for its time",
}

func listParams() []Param {
	names, does := listing.Fields()
	params := []Param{{"limit", "most tasks of a page: 1 to 1,000, default 100"}, {"cursor", "cursor of the page before"}}
	for i, name := range names {
		params = append(params, Param{name, does[i]})
	}
	return params
}
