// Package stores is the HTTP API of task stores, below /store/{name}: the routes of the Task Store document, and the
// dialect of its original client below /store/{name}/compat.
//
// It keeps no state: it makes requests of package item out of what is asked, and answers with what the engine says.
package stores

import (
	"encoding/json"
	"net/http"
	"strconv"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/stores/form"
	"taskledger/api/token"
	"taskledger/item"
)

// Root begins the path of every route.
const Root = "/store/"

const (
	// maxUpdate takes the largest update with data of control characters, each of which JSON writes in six bytes.
	maxUpdate = 2 << 20
	// maxClaim takes 1,000 ids, and a group whose name is escaped.
	maxClaim = 32 << 10
)

// front answers requests.
type front struct{ stores operations.Stores }

// Routes returns the routes of the stores that the client reaches.
func Routes(s operations.Stores) []api.Route {
	f := &front{s}
	get := func(path, summary string, out any, serve func(*api.Call, string) error, query ...api.Param) api.Route {
		return api.Route{
			Method:  http.MethodGet,
			Pattern: Root + "{name}" + path,
			Summary: summary,
			Role:    token.Viewer,
			Scope:   api.OneStore,
			Large:   true,
			Query:   query,
			Out:     out,
			Serve:   named(serve),
		}
	}
	post := func(path, summary string, most int64, in, out any, serve func(*api.Call, string) error) api.Route {
		return api.Route{
			Method:  http.MethodPost,
			Pattern: Root + "{name}" + path,
			Summary: summary,
			Role:    token.Submitter,
			Scope:   api.OneStore,
			MaxBody: most,
			Untyped: true,
			Keyed:   true,
			Aged:    true,
			In:      in,
			Out:     out,
			Serve:   named(serve),
		}
	}
	one := func(r api.Route) api.Route {
		r.Large = false
		return r
	}
	counted := func(r api.Route) api.Route {
		r.Counted = true
		return r
	}
	paged := func(r api.Route) api.Route {
		r.Class = api.Pages
		return r
	}
	waiting := func(r api.Route) api.Route {
		r.Class = api.Poll
		return r
	}
	linear := api.Param{
		Name: "linear",
		Does: "Proves that the answer holds all that was changed before it.",
		Is:   api.Boolean,
	}
	limit := api.Param{Name: "limit", Does: "Limits the tasks of the answer; 0 stands for all.", Is: api.Integer}
	after := api.Param{Name: "after", Does: "Names the last task that is known, after which the list begins."}
	owned := api.Param{Name: "owned", Does: "Shows tasks that are not available, too.", Is: api.Boolean}
	group := api.Param{Name: "name", Does: "Names the group, which may be one that is no segment of a path."}
	all := []api.Route{
		get("/groups", "List the groups that have tasks", []string{}, f.groups, linear),
		get("/stats", "Count the tasks of every group", []form.Group{}, f.stats, linear),
		one(get("/task/{task}", "Show a task", form.Task{}, f.task, linear)),
		paged(get("/tasks/{tasks}", "Show up to 1,000 tasks, null for each that is not there",
			[]*form.Task{}, f.tasks, linear)),
		paged(get("/group/{group}", "List the tasks of a group by id",
			[]form.Task{}, f.group, limit, after, owned, linear)),
		paged(get("/group/{$}", "List the tasks of the group /",
			[]form.Task{}, f.group, limit, after, owned, linear)),
		paged(get("/group", "List the tasks of a group, whatever its name",
			[]form.Task{}, f.groupNamed, group, limit, after, owned, linear)),
		counted(post("/update", "Add, change and delete tasks: all of it, or nothing",
			maxUpdate, form.Update{}, form.Tasks{}, f.update)),
		waiting(post("/claim", "Claim a task of a group for a time",
			maxClaim, form.Claim{}, form.Tasks{}, f.claim)),
	}
	return append(all, f.compat()...)
}

// named checks the name of the store for a handler.
func named(serve func(*api.Call, string) error) func(*api.Call) error {
	return func(c *api.Call) error {
		store := c.Path("name")
		if err := item.ValidateStore(store); err != nil {
			return err
		}
		return serve(c, store)
	}
}

// ErrorFormat returns the form of errors below Root, whatever refuses a request.
func ErrorFormat() api.ErrorFormat {
	return api.ErrorFormat{
		Path:   Root,
		Type:   "application/json",
		Out:    form.Errors{},
		Refuse: refuse,
	}
}

func refuse(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	status, after := p.Status, p.RetryAfter
	switch {
	case p.Type == problem.Overloaded: // nothing was done, unlike after 503
		status = http.StatusTooManyRequests
	case status == http.StatusGatewayTimeout: // as with 503, the owner of the store has not answered
		status, after = http.StatusServiceUnavailable, 1
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if after > 0 {
		h.Set("Retry-After", strconv.FormatInt(after, 10))
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(form.Errors{Errors: []string{p.Error()}}) // it fails when the client has gone
}
