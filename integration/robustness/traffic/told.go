package traffic

import (
	"context"
	"errors"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// Answer returns the answer of a call that ended with err. A caller that did not live to hear it knows nothing:
// history.Unknown.
func Answer(err error) history.Answer {
	var state *task.StateError
	var invalid *store.InvalidError
	var overload *task.OverloadError
	var limit *task.LimitError
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, task.ErrUnknown):
		return history.Unknown
	case errors.Is(err, task.ErrNotFound), errors.Is(err, task.ErrNotKept), errors.Is(err, schedule.ErrNotFound):
		return history.Absent
	case errors.As(err, &state), errors.As(err, &invalid), errors.As(err, &overload), errors.As(err, &limit),
		errors.Is(err, store.ErrUnavailable), errors.Is(err, task.ErrClosed), errors.Is(err, schedule.ErrChanged):
		return history.Refused
	}
	return history.Unknown
}

// OtherRequest reports whether a submit was refused because its request key stands for another request.
func OtherRequest(err error) bool { return errors.Is(err, task.ErrOtherRequest) }

// Outcome is the outcome that Future.Wait returned. That of a task that failed is no error.
func Outcome(result []byte, err error) (string, error) {
	if failure, ok := errors.AsType[*task.Error](err); ok {
		return "!" + failure.Code, nil
	}
	if err != nil {
		return "", err
	}
	return "=" + string(result), nil
}

// OutcomeOf is the outcome of the last run of a task that has ended; "" while none has, or one has begun since.
func OutcomeOf(t *task.Task) string {
	switch {
	case t.Status == task.Success:
		return "=" + string(t.Result)
	case t.Status == task.Failure && t.Details.RunEnded:
		return "!" + t.Error.Code
	}
	return ""
}

// Operate makes a call that changes a task: one of Cancel, Retry, RunNow, Delete, Suspend and Resume.
func Operate(ctx context.Context, c *engine.Client, v history.Verb, id events.TaskID) error {
	switch v {
	case history.Cancel:
		return c.Operations().Cancel(ctx, id, "")
	case history.Retry:
		_, err := c.Operations().Retry(ctx, id)
		return err
	case history.RunNow:
		return c.Operations().RunNow(ctx, id)
	case history.Delete:
		return c.Operations().Delete(ctx, id)
	case history.Suspend:
		return c.Operations().Suspend(ctx, id, "")
	case history.Resume:
		return c.Operations().Resume(ctx, id)
	}
	panic("no command: " + v)
}
