package sync

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/collections"
	"taskledger/collections/taskjson"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// Tasks is a list of runs, or a page of one.
type Tasks struct {
	Tasks []taskjson.Task `json:"tasks"`
	// Cursor asks for the next page, which may be empty; "" = nothing follows. Only a request with a limit has one.
	Cursor string `json:"cursor,omitempty"`
}

// shown returns a run as callers see it.
func shown(t *task.Task, p pair) (taskjson.Task, error) {
	return taskjson.Of(&taskjson.Run{
		ID:         t.ID,
		Source:     p.source,
		Collection: p.collection,
		Base:       t.Priority,
		Created:    t.CreatedAt,
		Started:    t.StartedAt,
		Ended:      t.EndedAt,
		Status:     t.Status,
		Substatus:  t.Substatus,
	})
}

// noTask is the error of a path that names no run that the token is for.
func noTask(c *api.Call) error {
	return problem.New(problem.NotFound, "there is no task %.200q", c.Path("task"))
}

// named returns the id of the run that the path names, if the token is for it.
func named(c *api.Call) (events.TaskID, error) {
	id, err := taskjson.Read(c.Path("task"))
	if err != nil || !c.Token().MayTask(id) || !c.Token().MayBehavior(collections.Behavior) {
		return "", noTask(c)
	}
	return id, nil
}

// get returns the run that the path names, if the token is for it.
func (f *front) get(c *api.Call) (t task.Task, id events.TaskID, err error) {
	if id, err = named(c); err != nil {
		return t, "", err
	}
	ctx, cancel := c.Ask()
	defer cancel()
	t, err = f.runs.Get(ctx, id)
	if errors.Is(err, task.ErrNotFound) || err == nil && t.Behavior != collections.Behavior {
		err = noTask(c)
	}
	return t, id, err
}

func (f *front) show(c *api.Call) error {
	t, _, err := f.get(c)
	if err != nil {
		return err
	}
	p, err := f.pairIn(c.Context(), map[string]pair{}, &t)
	if err == nil && p.source == "" {
		p, err = f.present(c.Context(), t.ID.Affinity())
	}
	if err != nil {
		return err
	}
	answer, err := shown(&t, p)
	if err != nil { // somebody has submitted it by hand
		return problem.New(problem.NotFound, "task %s is no run of a collection: %s", t.ID, err)
	}
	return c.JSON(http.StatusOK, answer)
}

// list answers with the runs of a source.
func (f *front) list(c *api.Call) error {
	s, err := f.selected(c)
	if err != nil {
		return err
	}
	limit, err := limitOf(c)
	if err != nil {
		return err
	}
	s.cursor = c.Param("cursor")
	if limit == 0 && s.cursor != "" {
		return invalid("cursor", "want a limit, too: without one there are no pages")
	}
	if s.span.empty() {
		return c.JSON(http.StatusOK, Tasks{Tasks: []taskjson.Task{}})
	}
	if limit > 0 {
		return f.page(c, s, limit)
	}
	return c.Array(`{"tasks":[`, `]}`, func() (page []any, more bool, err error) {
		some, more, err := f.more(c, s, maxLimit)
		for _, t := range some {
			page = append(page, t)
		}
		return page, more, err
	})
}

// longest bounds the time in which a page is looked for: one that is not full by then is told as it is.
const longest = 4 * time.Second

// page answers with a page of the list, of at most limit runs.
func (f *front) page(c *api.Call, s *selection, limit int) error {
	answer := Tasks{Tasks: []taskjson.Task{}}
	begun, more := time.Now(), true
	for more && len(answer.Tasks) < limit && time.Since(begun) < longest {
		var some []taskjson.Task
		var err error
		if some, more, err = f.more(c, s, limit-len(answer.Tasks)); err != nil {
			return err
		}
		answer.Tasks = append(answer.Tasks, some...)
	}
	if more {
		answer.Cursor = s.cursor
	}
	return c.JSON(http.StatusOK, answer)
}

// selection says which runs a list has, and how far it has come.
type selection struct {
	source string
	status taskjson.Status // "" = any
	span   span
	filter task.Filter
	cursor string
	pairs  map[string]pair // by affinity, as pairIn finds them
}

// selected reads which runs a list is to have. It checks the parameters in the order in which the scheduler of
// EventNative does.
func (f *front) selected(c *api.Call) (s *selection, err error) {
	s = &selection{source: c.Param("source"), filter: task.Filter{Behavior: collections.Behavior}}
	if s.source == "" {
		return nil, invalid("source", "it is required")
	}
	if s.pairs, err = f.pairs(c, s.source); err != nil {
		return nil, err
	}
	for _, name := range []string{"start", "end"} {
		if c.Param(name) == "" {
			return nil, invalid(name, "it is required")
		}
	}
	if s.span, err = spanOf(c); err != nil {
		return nil, err
	}
	s.filter.CreatedFrom, s.filter.CreatedTo = s.span.from.Time(), (s.span.to + 1).Time()
	if text := c.Param("status"); text != "" {
		if s.status, err = taskjson.ParseStatus(strings.TrimSpace(text)); err != nil {
			return nil, invalid("status", "%s", strings.TrimPrefix(err.Error(), "status "))
		}
	}
	if s.status == taskjson.Running {
		s.filter.Substatus = task.SubRunning
	}
	s.filter.AffinityPrefix = s.source + "_"
	if name := c.Param("collection"); name != "" {
		p := pair{s.source, name}
		if known, err := f.known(c, s.pairs, p); err != nil || !known {
			return nil, cmp.Or(err, unknown("collection", name))
		}
		s.filter.Affinity = p.id()
	}
	return s, nil
}

// more returns the next runs of a selection, at most so many, and whether others may follow. A shard that does not
// answer is an error: the list would lack its runs, and nobody would know.
func (f *front) more(c *api.Call, s *selection, most int) (some []taskjson.Task, more bool, err error) {
	ctx, cancel := c.Ask()
	defer cancel()
	s.filter.Limit = most
	page, err := f.runs.ListPage(ctx, s.filter, s.cursor)
	if err != nil {
		return nil, false, err
	}
	if err := silent(&page); err != nil {
		return nil, false, err
	}
	for i := range page.Tasks {
		t := &page.Tasks[i]
		if !c.Token().MayTask(t.ID) || !c.Token().MayBehavior(t.Behavior) {
			continue
		}
		p, err := f.pairIn(ctx, s.pairs, t)
		if err != nil {
			return nil, false, err
		}
		if p.source != s.source {
			continue
		}
		run, err := shown(t, p)
		if err == nil && (s.status == "" || run.Status == s.status) { // a task of another id is none of a collection
			some = append(some, run)
		}
	}
	s.cursor = page.Cursor
	return some, !page.Through && page.Cursor != "", nil
}

// silent returns an error that names a shard whose tasks are not in a page; nil = all are.
func silent(page *task.Page) error {
	if len(page.Missing) == 0 {
		return nil
	}
	m := page.Missing[0]
	return fmt.Errorf("shard %d does not answer (%s): %w", m.Shard, problem.Of(m.Err), store.ErrUnavailable)
}
