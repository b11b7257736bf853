// Package works is the HTTP API of partitioned works, below /v1/tasks/{id}/work.
//
// It keeps no state: it asks as any client does, and judges whether the token of the caller is for the behavior of the
// task.
package works

import (
	"encoding/json"
	"math"
	"net/http"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/store"
	"taskledger/task"
	"taskledger/work/progress"
)

// maxBody takes what a reset or a rerun says: each byte of a token may take six.
const maxBody = 32 << 10

// front answers requests.
type front struct{ works operations.Works }

// Reset says what a reset forgets.
type Reset struct {
	// Thresholds forgets what counters have counted, and nothing else. true is the only choice: without it a reset
	// forgets the run, its buckets and counters.
	Thresholds chosen `json:"thresholds,omitempty"`
	// Token sets the token of a stream that is suspended or has ended, and nothing else: it goes on from there. "" stands
	// for the beginning.
	Token  given  `json:"token,omitempty"`
	Reason string `json:"reason,omitempty"` // of Token: it is recorded, and needed
}

// check returns an error for a reset that may mean either of two.
func (r *Reset) check() error {
	switch {
	case r.Token != "" && bool(r.Thresholds):
		return &store.InvalidError{Field: "token", Problem: "want either thresholds or a token"}
	case r.Token == "" && r.Reason != "":
		return &store.InvalidError{Field: "reason", Problem: "want one with a token alone"}
	}
	return nil
}

// given is a text that was given, behind "=", also where it is empty. The zero value was not.
type given string

// UnmarshalJSON implements json.Unmarshaler. It refuses null, which encoding/json takes for no field.
func (g *given) UnmarshalJSON(text []byte) error {
	var is string
	if string(text) == "null" || json.Unmarshal(text, &is) != nil {
		const want = "want a text, from which the stream goes on; a reset of the run has none"
		return &store.InvalidError{Field: "token", Problem: want}
	}
	*g = given("=" + is)
	return nil
}

// chosen is a field whose only value is true.
type chosen bool

// UnmarshalJSON implements json.Unmarshaler. It refuses null, which encoding/json takes for no field.
func (c *chosen) UnmarshalJSON(text []byte) error {
	if string(text) != "true" {
		const want = "want true, which forgets what counters have counted; a reset of the run has no body"
		return &store.InvalidError{Field: "thresholds", Problem: want}
	}
	*c = true
	return nil
}

// Rerun says what the next run has.
type Rerun struct {
	Failed bool `json:"failed"` // the buckets that had failed items; true is the only choice
}

// Routes returns the routes of the works that the client reaches.
func Routes(w operations.Works) []api.Route {
	f := &front{w}
	// of makes a route to the work of a task, below which path lies.
	of := func(method, path, summary string, role token.Role, serve func(*api.Call) error) api.Route {
		return api.Route{
			Method:  method,
			Pattern: "/v1/tasks/{id}/work" + path,
			Summary: summary,
			Role:    role,
			Scope:   api.OneTask,
			Serve:   serve,
		}
	}
	show := of(http.MethodGet, "", "Tell how far the work of a task has come", token.Viewer, f.show)
	show.Out = progress.Work{}
	show.Query = []api.Param{{
		Name: "linear",
		Does: "Proves that the answer holds all that was changed before it.",
		Is:   api.Boolean,
	}}
	errs := of(http.MethodGet, "/errors", "Show the failed items of the last run, by bucket, newest first",
		token.Viewer, f.errors)
	errs.Large, errs.Out = true, progress.FailurePage{}
	errs.Query = []api.Param{
		{
			Name:    "limit",
			Does:    "Limits a page to 1 to 100 buckets.",
			Is:      api.Integer,
			Least:   1,
			Most:    progress.MaxPage,
			Default: 20,
		},
		{Name: "cursor", Does: "Continues after a page, by the cursor that it has, even where it has no buckets."},
	}
	reset := of(http.MethodPost, "/reset", "Forget the run of a work that does not run, or what its counters counted",
		token.Operator, f.reset)
	reset.MaxBody, reset.In, reset.Optional = maxBody, Reset{}, true
	reset.Status = []int{http.StatusNoContent}
	rerun := of(http.MethodPost, "/rerun", "Run the buckets again that had failed items", token.Operator, f.rerun)
	rerun.MaxBody, rerun.In, rerun.Status = maxBody, Rerun{}, []int{http.StatusNoContent}
	return []api.Route{show, errs, reset, rerun}
}

// look returns the work of the task, if the token is for its behavior.
func (f *front) look(c *api.Call, linear bool) (progress.Work, error) {
	work := f.works.Work
	if linear {
		work = f.works.WorkLinear
	}
	w, err := work(c.Context(), c.Task())
	if err == nil && !c.Token().MayBehavior(w.Behavior) {
		return progress.Work{}, problem.New(problem.NotFound, "there is no task %s", c.Task())
	}
	return w, err
}

// known returns an error unless the token is for the behavior of the task.
func (f *front) known(c *api.Call) error {
	if len(c.Token().Behaviors) == 0 {
		return nil
	}
	_, err := f.look(c, false)
	return err
}

func (f *front) show(c *api.Call) error {
	linear, err := c.Flag("linear")
	if err != nil {
		return err
	}
	w, err := f.look(c, linear)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, w)
}

func (f *front) errors(c *api.Call) error {
	limit, err := c.Number("limit", 20, 1, math.MaxInt32)
	if err == nil && limit > progress.MaxPage {
		err = &task.LimitError{Field: "limit", Limit: progress.MaxPage, Got: int64(limit)}
	}
	if err == nil {
		err = f.known(c)
	}
	if err != nil {
		return err
	}
	page, err := f.works.WorkFailures(c.Context(), c.Task(), c.Param("cursor"), limit)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, page)
}

func (f *front) reset(c *api.Call) error {
	var what Reset
	err := c.ReadOptional(&what)
	if err == nil {
		err = what.check()
	}
	if err == nil {
		err = f.known(c)
	}
	if err == nil {
		err = f.resets(c, &what)
	}
	if err != nil {
		return err
	}
	return c.Done()
}

func (f *front) resets(c *api.Call, what *Reset) error {
	how := operations.WorkReset{
		Thresholds: bool(what.Thresholds),
		Reason:     what.Reason,
	}
	if what.Token != "" {
		token := string(what.Token[1:])
		how.Token = &token
	}
	return f.works.ResetWork(c.Context(), c.Task(), how)
}

func (f *front) rerun(c *api.Call) error {
	var what Rerun
	if err := c.ReadOptional(&what); err != nil {
		return err
	}
	if !what.Failed { // also without a body
		return &store.InvalidError{Field: "failed", Problem: "want true: retry begins a run of all buckets"}
	}
	if err := f.known(c); err != nil {
		return err
	}
	if err := f.works.RerunWork(c.Context(), c.Task()); err != nil {
		return err
	}
	return c.Done()
}
