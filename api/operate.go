package api

import (
	"context"
	"errors"
	"net/http"

	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/events"
	"taskledger/task"
)

// Reason gives the reason of a change.
type Reason struct {
	Reason string `json:"reason,omitempty"`
}

// verbs describes the verbs of a task that have a route of their own.
var verbs = map[operations.Verb]string{
	operations.Cancel:  "Cancel a task",
	operations.Suspend: "Keep a task from starting",
	operations.Resume:  "Let a suspended task go on",
	operations.Retry:   "Run a task again that has ended",
	operations.RunNow:  "Start a task now that waits for its time",
}

// operate returns the handler that changes one task.
func (s changes) operate(verb operations.Verb) func(*Call) error {
	return func(c *Call) error {
		var why Reason
		err := c.ReadOptional(&why)
		if err == nil {
			err = checkReason(why.Reason)
		}
		if err == nil {
			err = known(c.ctx, c, s.reader, c.id, verb)
		}
		anew := false
		if err == nil {
			anew, err = s.operateMatched(c.ctx, c, verb, why.Reason)
		}
		switch {
		case err != nil:
			return err
		case anew:
			return c.JSON(http.StatusOK, ChangedTask{ID: c.id, NewLife: true})
		}
		return c.Done()
	}
}

// operateMatched changes the task of a call: as it is, or as it was seen where the call names a version.
func (s changes) operateMatched(
	ctx context.Context, c *Call, verb operations.Verb, reason string,
) (anew bool, err error) {
	seen, err := c.matchVersion()
	switch {
	case err != nil:
		return false, err
	case seen == events.Position{}:
		return s.operator.Operate(ctx, verb, string(c.id), reason)
	}
	return s.operateSeen(ctx, verb, &task.Task{ID: c.id, Version: seen}, reason)
}

// operateSeen changes a task as it was seen. It refuses a task that has another event since, as a condition that does
// not hold.
func (s changes) operateSeen(
	ctx context.Context, verb operations.Verb, seen *task.Task, reason string,
) (anew bool, err error) {
	anew, err = s.operator.OperateSeen(ctx, verb, seen, reason)
	if state, refused := errors.AsType[*task.StateError](err); refused && state.Changed {
		p := problem.New(problem.Changed, "%s", state.Problem)
		p.Task = string(seen.ID)
		return false, p
	}
	return anew, err
}
