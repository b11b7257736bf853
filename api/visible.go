package api

import (
	"context"

	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/shape"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/task"
)

// visible returns an error unless the token may see a task.
func visible(by *token.Token, t *task.Task) error {
	if t.Behavior != "" && !by.MayBehavior(t.Behavior) {
		return problem.New(problem.NotFound, "there is no task %s", t.ID)
	}
	return nil
}

// known refuses a task of another behavior than those of the token.
func known(ctx context.Context, c *Call, reader operations.Reader, id events.TaskID, verb operations.Verb) error {
	if len(c.by.Behaviors) == 0 {
		return nil
	}
	get := reader.Get
	if verb == operations.Retry { // a forgotten task can be retried, too
		get = reader.GetForgotten
	}
	t, err := get(ctx, id)
	if err != nil {
		return err
	}
	return visible(c.by, &t)
}

// MaySubmit returns an error unless the token of the caller may submit tasks of a behavior.
func (c *Call) MaySubmit(behavior string) error { return maySubmit(c.by, behavior) }

func maySubmit(by *token.Token, behavior string) error {
	if !by.MayBehavior(behavior) {
		return problem.New(problem.Forbidden, "the token is not for the behavior %s", shape.Clip(behavior))
	}
	if !by.MaySubmit(behavior) {
		return problem.New(problem.Forbidden, "the behavior %s runs programs: it needs role operator, "+
			"or a token that names it (token new --behavior %[1]s)", behavior)
	}
	return nil
}
