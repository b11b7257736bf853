package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"taskledger/api"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// reader implements operations.Reader.
type reader struct{ *link }

// Get implements operations.Reader.
func (r reader) Get(ctx context.Context, id events.TaskID) (task.Task, error) {
	return r.get(ctx, id, false)
}

// GetForgotten implements operations.Reader.
func (r reader) GetForgotten(ctx context.Context, id events.TaskID) (task.Task, error) {
	return r.get(ctx, id, true)
}

func (r reader) get(ctx context.Context, id events.TaskID, forgotten bool) (t task.Task, err error) {
	q := newParams()
	q.flag("forgotten", forgotten)
	err = r.ofTask(ctx, "get", id, "", q, &t)
	return t, err
}

// ofTask asks for something of a task.
func (r reader) ofTask(ctx context.Context, does string, id events.TaskID, below string, q params, into any) error {
	path, err := pathOf(id, below)
	if err != nil {
		return fmt.Errorf("%s: %w", does, err)
	}
	_, err = r.ask(ctx, request{
		does:   does,
		method: http.MethodGet,
		path:   path,
		query:  q.Values,
	}, into)
	return err
}

// Explain implements operations.Reader.
func (r reader) Explain(ctx context.Context, id events.TaskID) (e engine.Explanation, err error) {
	err = r.ofTask(ctx, "explain", id, "/explain", newParams(), &e)
	return e, err
}

// ListPage implements operations.Reader.
func (r reader) ListPage(ctx context.Context, f task.Filter, cursor string) (page task.Page, err error) {
	const does = "list"
	if field, problem := f.Problem(); field != "" {
		return page, fmt.Errorf("%s: %w", does, &store.InvalidError{Field: field, Problem: problem})
	}
	q := newParams()
	for name, value := range fieldsOf(f) {
		q.text(name, value)
	}
	q.number("limit", int64(f.Limit))
	q.text("cursor", cursor)
	var told api.TaskPage
	_, err = r.ask(ctx, request{
		does:   does,
		method: http.MethodGet,
		path:   "/v1/tasks",
		query:  q.Values,
		most:   pageBytes,
	}, &told)
	if err != nil {
		return page, err
	}
	return task.Page{
		Tasks:   told.Tasks,
		Missing: missing(told.Missing),
		Cursor:  told.Cursor,
		Through: told.Through || told.Cursor == "",
	}, nil
}

// fieldsOf returns the fields of a filter as texts, by their names.
func fieldsOf(f task.Filter) map[string]string {
	fields := map[string]string{
		"behavior":        f.Behavior,
		"affinity":        f.Affinity,
		"affinity-prefix": f.AffinityPrefix,
		"node":            f.Node,
		"creator":         f.Creator,
		"tag":             f.Tag,
	}
	if f.Status != 0 {
		fields["status"] = f.Status.String()
	}
	if f.Substatus != 0 {
		fields["substatus"] = f.Substatus.String()
	}
	if f.Work {
		fields["work"] = "true"
	}
	for name, at := range map[string]time.Time{
		"created-from": f.CreatedFrom,
		"created-to":   f.CreatedTo,
		"ended-from":   f.EndedFrom,
		"ended-to":     f.EndedTo,
	} {
		if !at.IsZero() {
			fields[name] = timeText(at)
		}
	}
	for name, value := range fields {
		if value == "" {
			delete(fields, name)
		}
	}
	return fields
}

// missing returns the shards that did not answer.
func missing(told []api.Missing) (all []task.Missing) {
	for _, m := range told {
		all = append(all, task.Missing{
			Shard:  m.Shard,
			Err:    unavailable(errors.New(m.Detail)),
			Silent: m.Silent,
		})
	}
	return all
}

// Counts implements operations.Reader.
func (r reader) Counts(ctx context.Context, behavior string) (counts task.Counts, err error) {
	told, err := behaviorsOf(ctx, r.link, "count", behavior)
	if err != nil {
		return counts, err
	}
	counts.Missing = missing(told.Missing)
	counts.Rows = told.Counts
	return counts, nil
}

// behaviorsOf asks for the counts of a behavior, or of all where it is "", and for what is paused of them.
func behaviorsOf(ctx context.Context, l *link, does, behavior string) (told api.Behaviors, err error) {
	q := newParams()
	q.text("behavior", behavior)
	_, err = l.ask(ctx, request{
		does:   does,
		method: http.MethodGet,
		path:   "/v1/behaviors",
		query:  q.Values,
		most:   pageBytes,
	}, &told)
	return told, err
}
