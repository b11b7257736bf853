package logs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/view"
	"taskledger/events"
	"taskledger/tasklog"
)

// Page is a page of the log of a task.
type Page struct {
	Lines []view.LogLine `json:"lines"`
	// Cursor asks for what follows, also where the page reaches the end: what is written later comes there.
	Cursor string `json:"cursor"`
	More   bool   `json:"more,omitempty"`  // the end has not been reached
	Ended  bool   `json:"ended,omitempty"` // nothing follows but what was written in the last seconds
}

const (
	// So long a request rests that waits for lines, twice as long each time.
	shortestRest = 250 * time.Millisecond
	longestRest  = 2 * time.Second
)

func (f *front) page(c *api.Call) error {
	s, err := selected(c)
	if err != nil {
		return err
	}
	if s.Limit, err = c.Number("limit", 100, 1, tasklog.MaxPageLines); err != nil {
		return err
	}
	s.Cursor = c.Param("cursor")
	wait, _, err := c.Wait()
	if err != nil {
		return err
	}
	told, err := f.await(c, s, wait)
	if err != nil {
		return err
	}
	page := Page{
		Lines:  make([]view.LogLine, len(told.Lines)),
		Cursor: told.Cursor,
		More:   told.More,
		Ended:  told.Ended,
	}
	for i, l := range told.Lines {
		page.Lines[i] = view.OfLogLine(l)
	}
	return c.JSON(http.StatusOK, page)
}

// selected reads which lines of the task a request is for.
func selected(c *api.Call) (s tasklog.Selection, err error) {
	for name, into := range map[string]*events.Millis{"start": &s.Since, "end": &s.Until} {
		at, err := c.Time(name)
		if err != nil {
			return s, err
		}
		*into = events.MillisOf(at)
	}
	attempt, err := c.Number("attempt", 0, 1, math.MaxUint32)
	if err != nil {
		return s, err
	}
	s.Attempt = uint32(attempt)
	if s.Level, err = tasklog.ParseLevel(cmp.Or(c.Param("level"), tasklog.Info.String())); err != nil {
		return s, &events.InvalidError{
			Field:   "level",
			Problem: fmt.Sprintf("%.32q: want %s or %s", c.Param("level"), tasklog.Info, tasklog.Error),
		}
	}
	return s, nil
}

// await reads a page, and again for a while as long as there is nothing in it and something may come.
func (f *front) await(c *api.Call, s tasklog.Selection, wait time.Duration) (told tasklog.Told, err error) {
	if wait == 0 {
		return f.read(c, s)
	}
	ctx, cancel := c.Parked(wait)
	defer cancel()
	end := time.Now().Add(wait)
	for rest := shortestRest; ; rest = min(2*rest, longestRest) {
		told, err = f.read(c, s)
		left := time.Until(end)
		if err != nil || len(told.Lines) > 0 || told.More || told.Ended || left <= 0 {
			return told, err
		}
		s.Cursor = told.Cursor
		if err := c.Rest(ctx, min(rest, left)); err != nil {
			return told, err
		}
		switch {
		case ctx.Err() == nil:
		case c.Drains():
			return told, nil
		default:
			return told, context.Cause(ctx)
		}
	}
}

// read reads a page, if the token is for the behavior of the task.
func (f *front) read(c *api.Call, s tasklog.Selection) (tasklog.Told, error) {
	ctx, cancel := c.Ask()
	defer cancel()
	told, err := f.logs.Log(ctx, c.Task(), s)
	if told.Behavior != "" && !c.Token().MayBehavior(told.Behavior) {
		return tasklog.Told{}, problem.New(problem.NotFound, "there is no task %s", c.Task())
	}
	return told, err
}

func (f *front) text(c *api.Call) error {
	s, err := selected(c)
	if err != nil {
		return err
	}
	told, err := f.read(c, s)
	if err != nil {
		return err
	}
	w, end, done, err := c.Stream()
	if err != nil {
		return err
	}
	defer done()
	for {
		for _, l := range told.Lines {
			at, _ := l.At.MarshalText() // it never fails
			if _, err := fmt.Fprintf(w, "%s %s %d %s\n", at, l.Level, l.Attempt, l.Text); err != nil {
				return err
			}
		}
		if !told.More {
			return end()
		}
		s.Cursor = told.Cursor
		if told, err = f.read(c, s); err != nil {
			return err
		}
	}
}
