package ui

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/task"
)

// maxSubmit takes the largest parameters in the form that a browser sends, in which the end of a line has six bytes,
// and the other fields.
const maxSubmit = 6*events.MaxPayloadBytes + 16<<10

func (u *UI) submitRoutes() []api.Route {
	return []api.Route{
		{
			Method:  http.MethodGet,
			Pattern: Root + "submit",
			Summary: "Show the form of a new task",
			Role:    token.Submitter,
			Scope:   api.ItsTasks,
			Query:   []api.Param{{Name: "like", Does: "id of a task that it begins as a copy of"}},
			Large:   true,
			Serve:   u.askSubmit,
		},
		{
			Method:  http.MethodPost,
			Pattern: Root + "submit",
			Summary: "Submit a task",
			Role:    token.Submitter,
			Scope:   api.ItsTasks,
			MaxBody: maxSubmit,
			Form: []api.Param{
				{Name: "behavior"},
				{Name: "params"},
				{Name: "task"},
				{Name: "delay"},
				{Name: "not_before"},
				{Name: "priority"},
				{Name: "tags"},
				{Name: "deadline"},
				{Name: "key"},
			},
			Large: true,
			Serve: u.submit,
		},
	}
}

// submission is a form of a new task, as it was typed.
type submission struct {
	Behavior, Params, ID, Delay, NotBefore, Priority, Tags, Deadline, Key string

	Behaviors []string          // that can be chosen
	Like      events.TaskID     // that it is a copy of; "" = none
	Wrong     map[string]string // by field: what is wrong with it
	Refused   string            // why nothing was submitted, of no field
}

// First returns the form of a first task: of a behavior that each node has. It has an id, so that a form that is sent
// twice is one task.
func (f *frame) First() *submission {
	s := &submission{Behavior: "sleep", Params: `{"duration":"1s"}`, ID: f.By.Prefix + "first"}
	switch allowed := f.By.Behaviors; {
	case len(allowed) == 0 || slices.Contains(allowed, s.Behavior):
	case slices.Contains(allowed, "noop"):
		s.Behavior, s.Params = "noop", "{}"
	default:
		s.Behavior, s.Params = allowed[0], "{}"
	}
	return s
}

func (u *UI) askSubmit(c *api.Call) error {
	l := u.look(c, "Submit", "Submit a task")
	body := &submission{Params: "{}", Key: rand.Text()}
	if like := c.Param("like"); like != "" {
		if err := l.copyInto(body, events.TaskID(like)); err != nil {
			return err
		}
	}
	l.choices(body)
	return l.show("submit", body)
}

// copyInto fills a form with what is recorded of a task.
func (l *look) copyInto(form *submission, id events.TaskID) error {
	if err := id.Validate(); err != nil {
		p := problem.New(problem.Invalid, "like: %s", err)
		p.Field = "like"
		return p
	}
	var t task.Task
	if err := l.get("/v1/tasks/"+pathOf(id)+"?forgotten=true", &t); err != nil {
		return err
	}
	form.Like, form.Behavior = t.ID, t.Behavior
	if form.Params = indented(t.Params); len(form.Params) > events.MaxPayloadBytes {
		form.Params = string(stored(t.Params))
	}
	if t.Params == nil {
		form.Params = ""
		l.Missing = append(l.Missing, "parameters: the task has none, or they are no longer stored")
	}
	if t.Priority != 0 {
		form.Priority = strconv.FormatInt(t.Priority, 10)
	}
	form.Tags = strings.Join(t.Tags, " ")
	return nil
}

// choices finds the behaviors that the caller may choose: those that nodes run, and those of tasks.
func (l *look) choices(form *submission) {
	var members nodes
	var counted api.Behaviors
	l.parts(
		part{"behaviors of the nodes", "/v1/nodes", &members},
		part{"behaviors of the tasks", "/v1/behaviors", &counted},
	)
	all := slices.Clone(l.By.Behaviors)
	for _, n := range members.Nodes {
		all = append(all, n.Behaviors...)
	}
	for _, n := range counted.Counts {
		all = append(all, n.Behavior)
	}
	slices.Sort(all)
	form.Behaviors = slices.DeleteFunc(slices.Compact(all), func(name string) bool {
		return name == "" || !l.By.MaySubmit(name)
	})
}

func (u *UI) submit(c *api.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	l := u.look(c, "Submit", "Submit a task")
	l.Address = Root + "submit"
	body := &submission{
		Behavior:  strings.TrimSpace(form.Get("behavior")),
		Params:    form.Get("params"),
		ID:        strings.TrimSpace(form.Get("task")),
		Delay:     strings.TrimSpace(form.Get("delay")),
		NotBefore: strings.TrimSpace(form.Get("not_before")),
		Priority:  strings.TrimSpace(form.Get("priority")),
		Tags:      strings.TrimSpace(form.Get("tags")),
		Deadline:  strings.TrimSpace(form.Get("deadline")),
		Key:       strings.TrimSpace(form.Get("key")),
		Wrong:     map[string]string{},
	}
	ask := body.read(l.frame)
	status := http.StatusBadRequest
	if len(body.Wrong) == 0 {
		var told api.Submitted
		header := http.Header{}
		if body.Key != "" {
			header.Set("Idempotency-Key", body.Key)
		}
		_, err := l.send(api.Question{
			Method: http.MethodPost,
			Path:   "/v1/tasks",
			Body:   ask,
			Header: header,
		}, &told)
		if err == nil {
			return c.Redirect(l.TaskAt(told.ID))
		}
		p, refused := errors.AsType[*problem.Problem](err)
		if !refused {
			return err
		}
		status = p.Status
		body.refused(p)
	}
	l.choices(body)
	return l.showAs(status, "submit", body)
}

// read returns what the form asks for, and notes what is wrong with it.
func (s *submission) read(on *frame) (ask api.Submit) {
	ask.Behavior = s.Behavior
	if s.Behavior == "" {
		s.Wrong["behavior"] = "want the behavior that the task has"
	}
	if text := strings.TrimSpace(s.Params); text != "" {
		if why := wrongJSON(text); why != "" {
			s.Wrong["params"] = why
		} else {
			ask.Params = json.RawMessage(text)
		}
	}
	if s.ID != "" {
		id := events.TaskID(s.ID)
		if err := id.Validate(); err != nil {
			s.Wrong["id"] = err.Error()
		}
		ask.ID = &id
	}
	if s.Delay != "" {
		d, err := time.ParseDuration(s.Delay)
		if ask.DelayMs = d.Milliseconds(); err != nil || d < 0 || d%time.Millisecond != 0 {
			s.Wrong["delay"] = "want a length of time such as 90s or 1h30m, in whole milliseconds"
		}
	}
	if s.NotBefore != "" {
		at, err := on.momentOf(s.NotBefore)
		if err != nil {
			s.Wrong["not_before"] = err.Error()
		}
		ask.NotBefore = &at
	}
	if s.Priority != "" {
		n, err := strconv.ParseInt(s.Priority, 10, 64)
		if err != nil {
			s.Wrong["priority"] = "want a whole number"
		}
		ask.Priority = n
	}
	ask.Tags = strings.Fields(s.Tags)
	if s.Deadline != "" {
		at, err := on.momentOf(s.Deadline)
		if err != nil {
			s.Wrong["deadline"] = err.Error()
		}
		ask.Deadline = &at
	}
	return ask
}

// momentOf reads a time: in RFC 3339, or without a zone in the one that the viewer has chosen. Where none was chosen a
// script shows times in the zone of the browser, which the node does not know.
func (f *frame) momentOf(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil && !f.ZoneSet {
		return at, errors.New("want a time with its zone, such as 2026-11-23T17:00:00Z or 2026-11-23T18:00:00+01:00")
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02 15:04:05"} {
		if err != nil {
			at, err = time.ParseInLocation(layout, text, f.Zone)
		}
	}
	if err != nil {
		return at, fmt.Errorf("want a time such as 2026-11-23T17:00:00Z, or 2026-11-23 17:00 in the zone %s", f.Zone)
	}
	return at, nil
}

// wrongJSON says why a text is no JSON value, and in which line; "" = it is one.
func wrongJSON(text string) string {
	var value json.RawMessage
	err := json.Unmarshal([]byte(text), &value)
	if err == nil {
		return ""
	}
	at := len(text)
	if syntax, is := errors.AsType[*json.SyntaxError](err); is {
		at = min(int(syntax.Offset), len(text))
	}
	return fmt.Sprintf("line %d: %s", strings.Count(text[:at], "\n")+1, err)
}

// fieldOf names the fields of the form by those that the API names.
var fieldOf = map[string]string{
	"behavior":        "behavior",
	"params":          "params",
	"parameters":      "params",
	"id":              "id",
	"delay_ms":        "delay",
	"delay":           "delay",
	"not_before":      "not_before",
	"priority":        "priority",
	"tags":            "tags",
	"deadline":        "deadline",
	"Idempotency-Key": "key",
	"key":             "key",
}

// refused notes why the API has refused the task.
func (s *submission) refused(p *problem.Problem) {
	field := fieldOf[p.Field]
	switch p.Type {
	case problem.UnknownBehavior:
		field = "behavior"
	case problem.KeyReused:
		field = "key"
	case problem.OutcomeUnknown, problem.Timeout:
		s.Refused = "It is not known whether the task was submitted. Send the same form again: with its key or id it is one task."
		return
	}
	if field == "" {
		s.Refused = "Nothing was submitted: " + p.Error()
		return
	}
	s.Wrong[field] = p.Error()
}

// LikeAt returns the address of a form that begins as a copy of a task.
func (f *frame) LikeAt(id events.TaskID) string {
	return Root + "submit?" + url.Values{"like": {string(id)}}.Encode()
}
