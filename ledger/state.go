package ledger

import (
	"context"
	"fmt"
	"time"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

// StateAt returns a task as it was at a time, with its parameters and result: the fold of its events up to then. Times are those of
// the owners' clocks; the zero time means now. A finished task that is no longer kept is as its last event left it. It
// wraps task.ErrNotFound for a time before the task was created or after it was deleted, and store.ErrTrimmed if the beginning of
// its life is no longer there.
func (l *Ledger) StateAt(ctx context.Context, id events.TaskID, at time.Time) (projection.Task, error) {
	all, err := l.life(ctx, id, events.MillisOf(at))
	if err != nil {
		return projection.Task{}, fmt.Errorf("state of %s: %w", id, err)
	}
	return foldLife(id, all)
}

// StateAfter is StateAt for the moment after the event with the sequence number seq, 1, 2, 3 ..., of the present or last life. It
// wraps task.ErrNotFound if that life has no such event.
func (l *Ledger) StateAfter(ctx context.Context, id events.TaskID, seq uint64) (projection.Task, error) {
	all, err := l.life(ctx, id, 0)
	if err != nil {
		return projection.Task{}, fmt.Errorf("state of %s: %w", id, err)
	}
	if seq == 0 || seq > uint64(len(all)) {
		return projection.Task{}, fmt.Errorf("state of %s: %w", id, absent(fmt.Sprintf("no event %d, it has 1 to %d", seq, len(all))))
	}
	return foldLife(id, all[:seq])
}

// absent says what is not there, when it is no task: a task.ErrNotFound in other words.
type absent string

func (a absent) Error() string      { return string(a) }
func (absent) Is(target error) bool { return target == task.ErrNotFound }

// foldLife folds the events of a life from its beginning on.
func foldLife(id events.TaskID, all []events.Event) (t projection.Task, err error) {
	state := projection.NewShard(0)
	var now *projection.Task
	for i := range all {
		if now, err = state.Apply(now, &all[i]); err != nil {
			return t, fmt.Errorf("state of %s: %w: %w", id, events.ErrDamaged, err)
		}
	}
	switch {
	case len(all) == 0:
		return t, fmt.Errorf("state of %s: %w at that time", id, task.ErrNotFound)
	case now == nil:
		return t, fmt.Errorf("state of %s: %w: it was deleted", id, task.ErrNotFound)
	}
	t = *now
	for i := range all {
		switch b := all[i].Body.(type) {
		case *events.Created:
			t.Params = b.Params
		case *events.Merged:
			t.Params = b.Params
		case *events.Succeeded:
			if all[i].Position.Ref == t.Outcome {
				t.Result = b.Result
			}
		}
	}
	t.ParamsElided, t.ResultElided = false, false
	return t, nil
}
