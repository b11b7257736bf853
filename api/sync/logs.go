package sync

import (
	"errors"
	"net/http"

	"taskledger/api"
	"taskledger/collections"
	"taskledger/events"
	"taskledger/task"
	"taskledger/tasklog"
)

// Logs holds lines that a run has written, or a page of them.
type Logs struct {
	Logs []Line `json:"logs"`
	// Cursor asks for the next page, where one follows; "" = none does. Only a request with a limit has one.
	Cursor string `json:"cursor,omitempty"`
}

// Line is a line that a run has written. A gap is one of level error, which says how many lines are missing.
type Line struct {
	Time    events.Millis `json:"time"`
	Message string        `json:"message"`
	Level   string        `json:"level"` // info or error
}

// logs answers with what a run has written, the attempts one after the other, also where retention has removed the run
// from memory: then its log is there for a while, and afterwards known to be gone.
func (f *front) logs(c *api.Call) error {
	in, err := spanOf(c)
	if err != nil {
		return err
	}
	limit, err := limitOf(c)
	if err != nil {
		return err
	}
	if limit == 0 && c.Param("cursor") != "" {
		return invalid("cursor", "want a limit, too: without one there are no pages")
	}
	id, err := named(c)
	if err != nil {
		return err
	}
	s := tasklog.Selection{Limit: limit, Cursor: c.Param("cursor")}
	if in.from > first {
		s.Since = in.from
	}
	if in.to < last {
		s.Until = max(in.to, first)
	}
	if limit > 0 {
		told, err := f.read(c, id, s)
		if err != nil {
			return err
		}
		answer := Logs{Logs: linesOf(told)}
		if told.More {
			answer.Cursor = told.Cursor
		}
		return c.JSON(http.StatusOK, answer)
	}
	return c.Array(`{"logs":[`, `]}`, func() (page []any, more bool, err error) {
		told, err := f.read(c, id, s)
		if err != nil {
			return nil, false, err
		}
		for _, l := range linesOf(told) {
			page = append(page, l)
		}
		s.Cursor = told.Cursor
		return page, told.More, nil
	})
}

// read reads a page of the lines of a run.
func (f *front) read(c *api.Call, id events.TaskID, s tasklog.Selection) (tasklog.Told, error) {
	ctx, cancel := c.Ask()
	defer cancel()
	told, err := f.runs.Log(ctx, id, s)
	other := told.Behavior != "" && told.Behavior != collections.Behavior
	if other || errors.Is(err, task.ErrNotFound) {
		return told, noTask(c)
	}
	return told, err
}

func linesOf(told tasklog.Told) []Line {
	lines := make([]Line, len(told.Lines))
	for i, l := range told.Lines {
		lines[i] = Line{l.At, l.Text, l.Level.String()}
	}
	return lines
}
