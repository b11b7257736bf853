package ui

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/task"
)

// Bounds of forms. A page has as many rows as tasksPerPage says, each with an id and a version.
const (
	maxAction  = 8 << 10
	maxJob     = 64 << 10 // with a cursor, which may have 32 KiB
	maxActions = 128 << 10
)

func (u *UI) actionRoutes() []api.Route {
	return []api.Route{
		{
			Method:  http.MethodPost,
			Pattern: Root + "tasks/{id}/change",
			Summary: "Change a task as it was seen",
			Role:    token.Operator,
			Scope:   api.OneTask,
			Class:   api.Poll, // the suspend of a work waits for its buckets
			MaxBody: maxAction,
			Form:    []api.Param{{Name: "operation"}, {Name: "version"}, {Name: "reason"}},
			Large:   true,
			Serve:   u.changeTask,
		},
		{
			Method:  http.MethodPost,
			Pattern: Root + "changes",
			Summary: "Change the tasks that were selected, as they were seen",
			Role:    token.Operator,
			Scope:   api.ItsTasks,
			Class:   api.Poll,
			MaxBody: maxActions,
			Form:    []api.Param{{Name: "operation"}, {Name: "task"}, {Name: "reason"}, {Name: "next"}},
			Many:    []string{"task"},
			Serve:   u.changeTasks,
		},
	}
}

// action is a change that a page offers.
type action struct {
	Operation operations.Verb
	Label     string
	Does      string
	Reason    bool // the API takes one
	Ends      bool // it cannot be undone
	// fits reports whether the state of a task allows it; the API judges again.
	fits func(t *task.Task) bool
}

// actions lists the changes of tasks in the order in which pages offer them.
var actions = []action{
	{
		Operation: operations.RunNow,
		Label:     "Run now",
		Does:      "starts a task now that waits for its time",
		fits: func(t *task.Task) bool {
			return !t.OnNode() && !t.Final() && !t.Forgotten && t.Substatus != task.SubReady
		},
	},
	{
		Operation: operations.Retry,
		Label:     "Retry",
		Does:      "runs a task again that has ended",
		fits:      func(t *task.Task) bool { return t.Status == task.Success || t.Status == task.Failure },
	},
	{
		Operation: operations.Suspend,
		Label:     "Suspend",
		Does:      "keeps a task from starting until it is resumed",
		Reason:    true,
		fits:      func(t *task.Task) bool { return !t.Suspended && !t.Final() && !t.Forgotten },
	},
	{
		Operation: operations.Resume,
		Label:     "Resume",
		Does:      "lets a suspended task go on",
		fits:      func(t *task.Task) bool { return t.Suspended && !t.Forgotten },
	},
	{
		Operation: operations.Cancel,
		Label:     "Cancel",
		Does:      "ends a task: it fails, and does not run again",
		Reason:    true,
		Ends:      true,
		fits:      func(t *task.Task) bool { return !t.Final() && !t.Cancelled && !t.Forgotten },
	},
	{
		Operation: operations.Delete,
		Label:     "Delete",
		Does:      "removes a task that does not run; its history stays in the journal",
		Ends:      true,
		fits:      func(t *task.Task) bool { return t.Status != task.Running && !t.Forgotten },
	},
}

// ofMatching lists the changes of all tasks that a filter selects.
func ofMatching() (all []action) {
	for _, a := range actions {
		if _, is := operations.OfMany[a.Operation]; is {
			all = append(all, a)
		}
	}
	return all
}

// actionOf returns the change that a form asks for.
func actionOf(form url.Values) (action, error) {
	asked := form.Get("operation")
	for _, a := range actions {
		if string(a.Operation) == asked {
			return a, nil
		}
	}
	p := problem.New(problem.Invalid, "operation: %.32q: want one that the page has a button for", asked)
	p.Field = "operation"
	return action{}, p
}

// offer lists the changes of tasks that a page has buttons for.
type offer struct {
	Actions []action
	// Reason keeps the text that somebody has typed.
	Reason string
	// Refused tells what became of the last change; "" = there was none.
	Refused string
}

// Reasons names the actions that take a reason.
func (o offer) Reasons() string {
	var names []string
	for _, a := range o.Actions {
		if a.Reason {
			names = append(names, a.Label)
		}
	}
	return strings.Join(names, " and ")
}

// offers returns the changes that the state of a task allows, if who looks may make them.
func (l *look) offers(t *task.Task) (o offer) {
	for _, a := range actions {
		if l.May("operator") && a.fits(t) {
			o.Actions = append(o.Actions, a)
		}
	}
	return o
}

func (u *UI) changeTask(c *api.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	does, err := actionOf(form)
	if err != nil {
		return err
	}
	seen, err := events.ParsePosition(form.Get("version"))
	if err != nil {
		p := problem.New(problem.Invalid, "version: %s", err)
		p.Field = "version"
		return p
	}
	l := u.look(c, "Tasks", string(c.Task()))
	l.Address = l.TaskAt(c.Task())
	at := "/v1/tasks/" + pathOf(c.Task())
	q := api.Question{
		Method: http.MethodPost,
		Path:   at + "/" + string(does.Operation),
		Header: http.Header{"If-Match": {strconv.Quote(seen.String())}},
	}
	if does.Operation == operations.Delete {
		q.Method, q.Path = http.MethodDelete, at
	}
	reason := strings.TrimSpace(form.Get("reason"))
	if does.Reason && reason != "" {
		q.Body = api.Reason{Reason: reason}
	}
	_, err = l.send(q, nil)
	p, refused := errors.AsType[*problem.Problem](err)
	switch {
	case err == nil && does.Operation == operations.Delete:
		return c.Redirect(Root + "tasks")
	case err == nil:
		return c.Redirect(l.Address)
	case !refused || p.Type == problem.NotFound:
		return err
	}
	body, err := l.task("")
	if err != nil {
		return err
	}
	body.Offer.Reason, body.Offer.Refused = reason, whyRefused(does.Label, p)
	return l.showAs(p.Status, "task", body)
}

// whyRefused says why a change of a task was not made.
func whyRefused(label string, p *problem.Problem) string {
	switch {
	case p.Type == problem.Changed:
		return label + ": the task has changed since you saw it, so nothing was done. This is how it is now."
	case unknown(p):
		return label + ": it is not known whether this was done. This is how the task is now."
	}
	return label + ": nothing was done: " + p.Error()
}

// changed tells what became of tasks that were selected.
type changed struct {
	Label   string
	Next    string // the page from which the form was sent
	Tasks   []changedTask
	Changed int
}

// changedTask tells what became of a task.
type changedTask struct {
	ID   events.TaskID
	Text string
	Done bool
	Gone bool // or the token is not for it
}

func (u *UI) changeTasks(c *api.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	does, err := actionOf(form)
	if err != nil {
		return err
	}
	ask := api.Change{Operation: does.Operation}
	if does.Reason {
		ask.Reason = strings.TrimSpace(form.Get("reason"))
	}
	if ask.IDs, ask.Versions, err = selectedIn(form["task"]); err != nil {
		return err
	}
	l := u.look(c, "Tasks", does.Label+": what became of it")
	var told api.ChangeAnswer
	_, err = l.send(api.Question{Method: http.MethodPost, Path: "/v1/tasks:change", Body: ask}, &told)
	if err != nil {
		return err
	}
	body := changed{Label: does.Label, Next: within(cmp.Or(form.Get("next"), Root+"tasks"))}
	for _, t := range told.Tasks {
		is := changedTask{ID: t.ID, Text: "done", Done: t.Problem == nil}
		switch {
		case t.NewLife:
			is.Text = "done: it was forgotten, and has begun a new life"
		case is.Done:
		case t.Problem.Type == problem.Changed:
			is.Text = "left as it is: it has changed since you saw it"
		case unknown(t.Problem):
			is.Text = "it is not known whether this was done: " + t.Problem.Error()
		default:
			is.Text, is.Gone = "refused: "+t.Problem.Error(), t.Problem.Type == problem.NotFound
		}
		if is.Done {
			body.Changed++
		}
		body.Tasks = append(body.Tasks, is)
	}
	return l.show("changes", body)
}

// selectedIn reads the rows that were selected: each a version, a space, and an id.
func selectedIn(rows []string) (ids []events.TaskID, versions []events.Position, err error) {
	for _, row := range rows {
		version, id, _ := strings.Cut(row, " ")
		seen, err := events.ParsePosition(version)
		if err != nil || id == "" {
			p := problem.New(problem.Invalid, "task: %.300q: want a version, a space, and the id of a task", row)
			p.Field = "task"
			return nil, nil, p
		}
		ids, versions = append(ids, events.TaskID(id)), append(versions, seen)
	}
	if len(ids) == 0 {
		p := problem.New(problem.Invalid, "No task was selected: nothing was done.")
		p.Field = "task"
		return nil, nil, p
	}
	return ids, versions, nil
}
