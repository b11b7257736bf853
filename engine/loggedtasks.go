package engine

import (
	"context"
	"errors"
	"sync"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
	"taskledger/tasklog"
)

// maxLogged bounds the forgotten tasks that a client remembers between the pages of their logs.
const maxLogged = 16

// loggedTasks remembers forgotten tasks of which logs are read, so that only the first page of a log searches the
// journal: what was forgotten changes no more. The zero value is empty.
type loggedTasks struct {
	mu   sync.Mutex
	all  [maxLogged]projection.Task // the latest ones
	next int                        // place of the next one in all
}

// logged returns a task of which the page of a log is asked for that a cursor names; "" = the first one.
func (c *Client) logged(ctx context.Context, id events.TaskID, cursor string) (projection.Task, error) {
	t, err := c.get(ctx, id, false)
	if c.cfg.Store == nil || !errors.Is(err, task.ErrNotFound) {
		return t, err
	}
	if t, is := c.loggedTasks.find(id, cursor); is {
		return t, nil
	}
	if t, err = c.search(ctx, id); err == nil && t.Forgotten {
		c.loggedTasks.add(t)
	}
	return t, err
}

// find returns a task of the life that a cursor names.
func (l *loggedTasks) find(id events.TaskID, cursor string) (t projection.Task, is bool) {
	if cursor == "" {
		return t, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.all {
		if t := &l.all[i]; t.ID == id {
			if _, err := tasklog.ParseCursor(cursor, id, t.Created); err == nil {
				return *t, true
			}
		}
	}
	return t, false
}

// add takes a task, without what may be large.
func (l *loggedTasks) add(t projection.Task) {
	t.Params, t.Result, t.Error = nil, nil, nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[l.next], l.next = t, (l.next+1)%maxLogged
}
