package ui

import (
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"taskledger/api"
	"taskledger/api/token"
	"taskledger/api/ui/timeline"
	"taskledger/events"
	"taskledger/task"
)

func (u *UI) taskRoutes() []api.Route {
	return []api.Route{{
		Method:  http.MethodGet,
		Pattern: Root + "tasks/{id}",
		Summary: "Show a task, its attempts and its history",
		Role:    token.Viewer,
		Scope:   api.OneTask,
		Query:   []api.Param{{Name: "cursor", Does: "older events"}},
		Large:   true,
		Serve:   u.showTask,
	}}
}

// one holds the parts of the page of a task.
type one struct {
	task.Task
	Known   bool // its owner has told how it is
	Why     *why // why it does not run, or does not tell; nil = it has ended or runs
	Events  []event
	Older   string // cursor of older events; "" = there are none
	Cursor  string // of the events that are shown; "" = the newest
	Drawing timeline.Drawing
	Offer   offer
}

// why is an explanation.
type why struct {
	Why   task.Reason   `json:"why"`
	Since events.Millis `json:"since"`
	Text  string        `json:"text"`
}

// event is an event as the API shows it.
type event struct {
	Position  string          `json:"position"`
	At        events.Millis   `json:"at"`
	Seq       uint64          `json:"seq"`
	Kind      string          `json:"kind"`
	Node      string          `json:"node"`
	Session   string          `json:"session"`
	Principal string          `json:"principal"`
	RequestID string          `json:"request_id"`
	Data      json.RawMessage `json:"data"`
}

// history is a page of events.
type history struct {
	Events []event `json:"events"`
	Cursor string  `json:"cursor"`
}

// eventsPerPage bounds the events that a page of a task reads, newest first.
const eventsPerPage = "1000"

func (u *UI) showTask(c *api.Call) error {
	l := u.look(c, "Tasks", string(c.Task()))
	body, err := l.task(c.Param("cursor"))
	if err != nil {
		return err
	}
	return l.show("task", body)
}

// task asks for what the page of a task shows, with events before a cursor. Where nobody answers for the task, the page
// has what the journal tells, and why nobody does.
func (l *look) task(cursor string) (*one, error) {
	id := l.call.Task()
	at := "/v1/tasks/" + pathOf(id)
	body := &one{Cursor: cursor}
	var past history
	var is why
	var unknown, unread, unexplained error
	var asked sync.WaitGroup
	asked.Go(func() { unknown = l.get(at+"?forgotten=true", &body.Task) })
	asked.Go(func() {
		unread = l.get(at+"/history?order=newest&limit="+eventsPerPage+cursorOf(cursor), &past)
	})
	asked.Go(func() { unexplained = l.get(at+"/explain", &is) })
	asked.Wait()
	if err := l.miss("the task as it is now", unknown); err != nil {
		return nil, err
	}
	l.misses("history", unread)
	body.ID, body.Known = id, unknown == nil
	if waits := !body.Final() && body.Status != task.Running; !body.Known || waits {
		if l.misses("why it waits", unexplained); is.Text != "" {
			body.Why = &is
		}
	}
	body.Events, body.Older = past.Events, past.Cursor
	until, ended := l.Now, body.Final()
	if !body.Known || cursor != "" { // the last phase may last longer than the events of this page
		until, ended = time.Time{}, false
	}
	body.Drawing = timeline.Draw(movesOf(past.Events), until, body.Older != "", ended)
	if body.Known {
		body.Offer = l.offers(&body.Task)
	}
	return body, nil
}

func cursorOf(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "&cursor=" + url.QueryEscape(cursor)
}

// movesOf returns the events that a timeline draws, oldest first.
func movesOf(newest []event) (moves []timeline.Move) {
	for _, e := range slices.Backward(newest) {
		var data struct {
			Attempt uint32        `json:"attempt"`
			Run     uint32        `json:"run"`
			Next    events.Millis `json:"next"`
		}
		_ = json.Unmarshal(e.Data, &data) // an event without these is drawn without them
		moves = append(moves, timeline.Move{
			At:      e.At.Time(),
			Kind:    e.Kind,
			Node:    e.Node,
			Attempt: data.Attempt,
			Run:     data.Run != 0,
			Next:    data.Next != 0,
		})
	}
	return moves
}

// laneHeight is the height of a lane without its edges.
const laneHeight = 16

// High and Top place a column in its lane.
func (o *one) High(b timeline.Bar) float64 { return laneHeight * b.Height() }

// Top is described at High.
func (o *one) Top(b timeline.Bar) float64 { return 1 + laneHeight - o.High(b) }

// Took shows how long phases have taken together.
func (o *one) Took(s timeline.Sum) string { return lengthOf(s.Took) }

// Millis returns a moment of the drawing as pages show it.
func (o *one) Millis(at time.Time) events.Millis { return events.MillisOf(at) }

// shortDrawing is the length below which a drawing tells its ends to the millisecond: they may be of one second.
const shortDrawing = 10 * time.Second

// End shows an end of the drawing.
func (o *one) End(f *frame, at time.Time) template.HTML {
	if o.Drawing.To.Sub(o.Drawing.From) < shortDrawing {
		return f.Millis(o.Millis(at))
	}
	return f.Time(o.Millis(at))
}

// Length shows the time between two moments of the drawing.
func (o *one) Length(from, to time.Time) string {
	if to.IsZero() {
		return "–"
	}
	return lengthOf(to.Sub(from))
}
