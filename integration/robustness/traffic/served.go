package traffic

import (
	"context"

	"taskledger/engine"
	"taskledger/integration/robustness/history"
	"taskledger/task"
)

// Served returns the state in which an owner shows a task.
func Served(t *task.Task) history.Served {
	d := &t.Details
	s := history.Served{
		Task:        string(t.ID),
		Status:      t.Status.String(),
		Seq:         d.Seq,
		Attempt:     t.Attempt,
		Runs:        t.Runs,
		Outcome:     OutcomeOf(t),
		Whole:       true,
		Suspended:   t.Suspended,
		Due:         t.Due(),
		Failures:    t.Failures,
		Lost:        t.Lost,
		Creator:     t.Creator,
		LastNode:    t.LastNode,
		WaitSince:   d.WaitsSince,
		SuspendedAt: t.SuspendedAt,
		Terms:       history.TermsOf(&d.Policy, t.Priority),
		Substatus:   t.Substatus.String(),
		Since:       t.Since,
		Looked:      d.At,
	}
	if d.Cause != 0 {
		s.WaitCause = d.Cause.String()
	}
	return s
}

// Shown records what a read shows of a task.
func Shown(op *history.Operation, t *task.Task) {
	op.Status, op.Attempt, op.Terms = t.Status.String(), t.Attempt, history.TermsOf(&t.Details.Policy, t.Priority)
	op.Substatus, op.Since, op.Looked = t.Substatus.String(), t.Since, t.Details.At
	op.Outcome = OutcomeOf(t)
}

// List reads every page of a list, and pauses between them.
func List(ctx context.Context, c *engine.Client, f task.Filter, op *history.Operation, pause func()) error {
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := c.ListPage(ctx, f, cursor)
		if err != nil {
			return err
		}
		for i := range page.Tasks {
			t := &page.Tasks[i]
			op.Listed = append(op.Listed, history.Life{Task: string(t.ID), Created: t.Details.Life})
		}
		cursor = page.Cursor
		pause()
	}
	return nil
}

// Paused reads what is paused.
func Paused(ctx context.Context, c *engine.Client) (string, error) {
	set, err := c.Operations().Settings(ctx)
	var all []history.PausedBehavior
	for _, p := range set.Paused {
		all = append(all, history.PausedBehavior{Behavior: p.Behavior, Reason: p.Reason, By: p.By, Since: p.Since})
	}
	return history.PausedText(all), err
}
