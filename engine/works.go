package engine

import (
	"context"
	"errors"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work/progress"
)

// Work returns how far the work of a task has come. It may be a moment behind. It returns task.ErrNotFound for a task
// without a work, as a task is before its first attempt has planned one.
func (o Operations) Work(ctx context.Context, id events.TaskID) (progress.Work, error) {
	return o.work(ctx, id, false)
}

// WorkLinear is Work, and reflects everything that was committed before the call.
func (o Operations) WorkLinear(ctx context.Context, id events.TaskID) (progress.Work, error) {
	return o.work(ctx, id, true)
}

func (o Operations) work(ctx context.Context, id events.TaskID, linear bool) (progress.Work, error) {
	asks := works.Asks{Read: o.c.read, Shards: o.c.cfg.Shards}
	return asks.Look(ctx, id, linear)
}

// ResetWork forgets what the run of a task's work has done: its buckets and counters, so that the next attempt plans
// another run, or with thresholds what its counters have counted, and nothing else. It returns a *task.StateError while
// the task runs or a bucket is open, and task.ErrNotFound for a task without a work.
func (o Operations) ResetWork(ctx context.Context, id events.TaskID, thresholds bool) error {
	what := events.ResetAll
	if thresholds {
		what = events.ResetThresholds
	}
	return o.ofWork(ctx, id, &works.Reset{Task: string(id), What: int64(what)})
}

// SetWorkToken sets the token of a task's work that is a stream: it goes on from there. "" stands for the beginning.
// The reason is recorded, and needed. It returns a *task.StateError unless the stream is suspended or has ended, or
// where the work is no stream, and task.ErrNotFound for a task without a work.
func (o Operations) SetWorkToken(ctx context.Context, id events.TaskID, token, reason string) error {
	return o.ofWork(ctx, id, &works.Reset{
		Task:   string(id),
		What:   int64(events.ResetToken),
		Token:  []byte(token),
		Reason: reason,
	})
}

// RerunWork gives a task whose work has ended a new run, due at once, over the buckets that had failed items. It
// returns a *task.StateError if there are none, or not all buckets were run: Operations.Retry goes on then.
func (o Operations) RerunWork(ctx context.Context, id events.TaskID) error {
	return o.ofWork(ctx, id, &works.Rerun{Task: string(id)})
}

func (o Operations) ofWork(ctx context.Context, id events.TaskID, c command.Command) error {
	_, err := o.c.ask(ctx, id, command.LaneSubmit, c)
	if errors.Is(err, task.ErrNotFound) {
		if _, missing := o.WorkLinear(ctx, id); errors.Is(missing, task.ErrNotFound) {
			err = missing // it says what the task is
		}
	}
	return err
}
