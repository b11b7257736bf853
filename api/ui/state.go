package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/events"
)

func (u *UI) stateRoutes() []api.Route {
	return []api.Route{{
		Method:  http.MethodGet,
		Pattern: Root + "tasks/{id}/state",
		Summary: "Show a task as it was after any of its events",
		Role:    token.Viewer,
		Scope:   api.OneTask,
		Query:   []api.Param{{Name: "seq", Does: "number of the event"}, {Name: "at", Does: "a time, in RFC 3339"}},
		Large:   true,
		Serve:   u.showState,
	}}
}

// past holds a former state of a task.
type past struct {
	ID     events.TaskID
	Seq    uint64 // of the event after which it was so; 0 = it is chosen by At
	At     string // a time, as it was typed
	Last   uint64 // sequence number of the newest event
	Event  *event // nil = it is not among the newest ones
	Fields []stateField
	Wrong  string // what is wrong with what was typed
}

// stateField is a member of a task.
type stateField struct {
	Name, Value string
	Was         string // its value before the event, where that is another one
	Changed     bool
}

func (u *UI) showState(c *api.Call) error {
	id := c.Task()
	l := u.look(c, "Tasks", "State of "+string(id))
	body := past{ID: id, At: c.Param("at")}
	text := c.Param("seq")
	seq, malformed := strconv.ParseUint(text, 10, 64)
	wrong := text != "" && (malformed != nil || seq == 0 || seq > mostFolded || body.At != "")
	if text != "" && !wrong {
		body.Seq = seq
	}
	var then states
	var asked sync.WaitGroup
	if !wrong && (text != "" || body.At != "") {
		asked.Go(func() { then = l.states(&body) })
	}
	var newest history
	unread := l.get("/v1/tasks/"+pathOf(id)+"/history?order=newest&limit="+eventsPerPage, &newest)
	asked.Wait()
	if err := l.miss("history", unread); err != nil {
		return err
	}
	switch {
	case len(newest.Events) > 0:
		body.Last = newest.Events[0].Seq
	case unread == nil:
		return problem.New(problem.NotFound, "there is no event of task %s", id)
	}
	if wrong || body.Last > 0 && body.Seq > body.Most() {
		body.Wrong = fmt.Sprintf("event: %.32q: want a number of 1 to %d, or a time", text, body.Most())
		body.Seq = body.Most()
		return l.showAs(http.StatusBadRequest, "state", &body)
	}
	if text == "" && body.At == "" && body.Last > 0 {
		body.Seq = body.Most()
		then = l.states(&body)
	}
	if then.wrong != nil {
		body.Wrong = then.wrong.Error()
		return l.showAs(then.wrong.Status, "state", &body)
	}
	if err := l.miss("the state", then.unknown); err != nil {
		return err
	}
	l.misses("the state before", then.unknownBefore)
	for i := range newest.Events {
		if newest.Events[i].Seq == body.Seq {
			body.Event = &newest.Events[i]
		}
	}
	body.Fields = compared(then.was, then.now, body.Seq > 1 && then.unknownBefore == nil)
	return l.show("state", &body)
}

// states holds the state that a page is about, and the one before its event.
type states struct {
	now, was               members
	wrong                  *problem.Problem // what was typed wrong; nil = nothing
	unknown, unknownBefore error
}

// states asks for the state that a page is about, and beside it for the one before.
func (l *look) states(of *past) (s states) {
	at := "/v1/tasks/" + pathOf(of.ID) + "?"
	query := url.Values{"at": {of.At}}
	var before sync.WaitGroup
	if of.Seq != 0 {
		query = url.Values{"seq": {strconv.FormatUint(of.Seq, 10)}}
	}
	if of.Seq > 1 {
		before.Go(func() { s.unknownBefore = l.get(at+"seq="+strconv.FormatUint(of.Seq-1, 10), &s.was) })
	}
	s.unknown = l.get(at+query.Encode(), &s.now)
	before.Wait()
	if s.unknown == nil {
		return s
	}
	p := problem.Of(s.unknown)
	if p.Status == http.StatusBadRequest || p.Status == http.StatusNotFound && of.At != "" {
		s.wrong, s.unknown, s.unknownBefore = p, nil, nil
	}
	return s
}

// members lists those of a JSON object, in their order.
type members []member

type member struct {
	name string
	text json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *members) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return fmt.Errorf("want an object: %w", err)
	}
	*m = nil
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("read a name: %w", err)
		}
		one := member{name: fmt.Sprint(name)}
		if err := d.Decode(&one.text); err != nil {
			return fmt.Errorf("read %s: %w", one.name, err)
		}
		*m = append(*m, one)
	}
	return nil
}

// get returns the text of a member; nil = there is none.
func (m members) get(name string) json.RawMessage {
	for _, one := range m {
		if one.name == name {
			return one.text
		}
	}
	return nil
}

// compared shows the members of a task, and where it is known what it was before, those that have changed.
func compared(was, now members, known bool) (all []stateField) {
	for _, is := range now {
		before := was.get(is.name)
		f := stateField{Name: is.name, Value: shownJSON(is.text)}
		if known && !bytes.Equal(before, is.text) {
			f.Changed, f.Was = true, shownJSON(before)
		}
		all = append(all, f)
	}
	for _, gone := range was {
		if known && now.get(gone.name) == nil {
			all = append(all, stateField{Name: gone.name, Was: shownJSON(gone.text), Changed: true})
		}
	}
	return all
}

// shownJSON shows a text without its quotes, and any other value with a member a line; "" for none.
func shownJSON(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return indented(value)
}

// StateAt returns the address of the state of a task after an event.
func (f *frame) StateAt(id events.TaskID, seq uint64) string {
	return f.TaskAt(id) + "/state?seq=" + strconv.FormatUint(seq, 10)
}

// mostFolded is the last event after which the API shows a state.
const mostFolded = 100_000

// Most numbers the last event after which there is a state to show.
func (p *past) Most() uint64 { return min(p.Last, mostFolded) }

// Before and After number the events beside that of the page; 0 = there is none.
func (p *past) Before() uint64 { return max(p.Seq, 1) - 1 }

// After is described at Before.
func (p *past) After() uint64 {
	if p.Seq == 0 || p.Seq >= p.Most() {
		return 0
	}
	return p.Seq + 1
}
