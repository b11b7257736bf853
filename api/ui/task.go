package ui

import (
	"encoding/json"
	"net/http"
	"slices"
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
		Serve:   u.showTask,
	}}
}

// one holds the parts of the page of a task.
type one struct {
	task.Task
	Why     *why // why it does not run; nil = it has ended or runs
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

// task asks for what the page of a task shows, with events before a cursor.
func (l *look) task(cursor string) (*one, error) {
	body := &one{Cursor: cursor}
	at := "/v1/tasks/" + pathOf(l.call.Task())
	if err := l.get(at+"?forgotten=true", &body.Task); err != nil {
		return nil, err
	}
	var past history
	asks := []part{{"history", at + "/history?order=newest&limit=" + eventsPerPage + cursorOf(body.Cursor), &past}}
	if !body.Final() && body.Status != task.Running {
		body.Why = &why{}
		asks = append(asks, part{"why it waits", at + "/explain", body.Why})
	}
	l.parts(asks...)
	if body.Why != nil && body.Why.Text == "" {
		body.Why = nil
	}
	body.Events, body.Older = past.Events, past.Cursor
	body.Drawing = timeline.Draw(movesOf(past.Events), l.Now, body.Older != "", body.Final() || body.Cursor != "")
	body.Offer = l.offers(&body.Task)
	return body, nil
}

func cursorOf(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "&cursor=" + cursor
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

// Millis returns a moment of the drawing as pages show it.
func (o *one) Millis(at time.Time) events.Millis { return events.MillisOf(at) }

// Length shows the time between two moments of the drawing.
func (o *one) Length(from, to time.Time) string {
	if to.IsZero() {
		return "–"
	}
	return lengthOf(to.Sub(from))
}
