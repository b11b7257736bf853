package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"taskledger/api/problem"
	"taskledger/api/view"
	"taskledger/ledger"
	"taskledger/task"
)

// HistoryPage holds some of the events of a task.
type HistoryPage struct {
	Events []view.Event `json:"events"`
	States []task.Task  `json:"states,omitempty"` // the task after each
	Cursor string       `json:"cursor,omitempty"` // asks for the next page; "" = there is none
}

// maxFolded bounds the events that are folded for the state after one of them, or before a page for the states of the
// page: more would take longer than an answer may.
const maxFolded = 100_000

func (s tasks) history(c *Call) error {
	states, err := c.Flag("states")
	if err != nil {
		return err
	}
	limit, err := c.Number("limit", 100, 1, ledger.MaxHistoryPage)
	if err != nil {
		return err
	}
	order := c.Param("order")
	if order != "" && order != "oldest" && order != "newest" {
		return invalid("order", "%.32q: want oldest or newest", order)
	}
	l := s.historian.Ledger()
	page, err := l.HistoryPage(c.ctx, c.id, ledger.HistoryOptions{
		Newest: order == "newest",
		Limit:  limit,
		Cursor: c.Param("cursor"),
		States: states,
		Fold:   maxFolded,
		Proven: len(c.by.Behaviors) > 0,
	})
	if err != nil {
		return err
	}
	answer := HistoryPage{
		Events: make([]view.Event, len(page.Events)),
		States: page.States,
		Cursor: page.Next,
	}
	for i, e := range page.Events {
		if e.Behavior != "" && !c.by.MayBehavior(e.Behavior) || e.Behavior == "" && len(c.by.Behaviors) > 0 {
			return problem.New(problem.NotFound, "there is no task %s", c.id)
		}
		answer.Events[i] = view.OfEvent(e)
	}
	return c.JSON(http.StatusOK, answer)
}

// state shows a task as it was.
func (s tasks) state(c *Call, at, seq string) error {
	var then time.Time
	var n uint64
	var err error
	switch {
	case at != "" && seq != "":
		return invalid("seq", "want it or at")
	case at != "":
		if then, err = timeOf("at", at); err != nil {
			return err
		}
	default:
		if n, err = strconv.ParseUint(seq, 10, 64); err != nil || n == 0 {
			return invalid("seq", "%.32q: want 1 or more", seq)
		}
		if n > maxFolded {
			return invalid("seq", "%d events are to be folded, the limit is %d", n, maxFolded)
		}
	}
	ctx, cancel := context.WithTimeout(c.ctx, answerWithin)
	defer cancel()
	if err := c.enter(c.ctx); err != nil {
		return err
	}
	l := s.historian.Ledger()
	var t task.Task
	if n > 0 {
		t, err = l.StateAfter(ctx, c.id, n)
	} else {
		t, err = l.StateAt(ctx, c.id, then)
	}
	if err == nil {
		err = visible(c.by, &t)
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, t)
}
