package synccli

import (
	"context"
	"errors"
	"fmt"

	"taskledger/api/operations"
	"taskledger/collections"
	"taskledger/collections/taskjson"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/task"
)

// find returns the schedule of a collection.
func find(ctx context.Context, all operations.Schedules, source, name string) (schedule.Schedule, error) {
	id := source + "_" + name
	s, err := all.Get(ctx, id)
	if err != nil && !errors.Is(err, schedule.ErrNotFound) {
		return s, err
	}
	if c, is := collectionOf(&s); err != nil || !is || c.Source != source || c.Name != name {
		return s, fmt.Errorf("collection %.64q of source %.64q: %w", name, source, schedule.ErrNotFound)
	}
	return s, nil
}

// collectionOf returns the collection that a schedule is of; false = it is of none.
func collectionOf(s *schedule.Schedule) (collections.Collection, bool) {
	if s.Definition.Behavior != collections.Behavior {
		return collections.Collection{}, false
	}
	c, err := collections.Of(s.Definition)
	return c, err == nil && c.ID() == s.Name
}

// latest returns the latest run of a collection; false = none is kept.
func latest(ctx context.Context, client *Client, id string) (t task.Task, found bool, err error) {
	filter := task.Filter{Behavior: collections.Behavior, Affinity: id, Limit: 1}
	for cursor := ""; ; {
		page, err := client.Runs.ListPage(ctx, filter, cursor)
		switch {
		case err != nil:
			return t, false, err
		case len(page.Missing) > 0:
			return t, false, page.Missing[0].Err
		case len(page.Tasks) > 0:
			return page.Tasks[0], true, nil
		case page.Through || page.Cursor == "":
			return t, false, nil
		}
		cursor = page.Cursor
	}
}

// shownID returns the id of a run as others see it; that of a task which nobody may show so is its own.
func shownID(id events.TaskID) string {
	if text, err := taskjson.Shown(id); err == nil {
		return text
	}
	return string(id)
}

// shown is a run under the id that others see.
type shown struct{ operations.Handle }

// ID implements operations.Handle.
func (s shown) ID() events.TaskID { return events.TaskID(shownID(s.Handle.ID())) }
