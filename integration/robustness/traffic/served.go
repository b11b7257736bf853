package traffic

import (
	"context"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/projection"
	"taskledger/task"
)

// Served returns the state in which an owner shows a task, by the clock of the reader.
func Served(t *projection.Task, now time.Time) (history.Served, error) {
	s := history.Served{Task: string(t.ID), Status: t.Status.String(), Seq: t.Seq, Attempt: t.Attempt, Runs: t.Runs,
		Whole: true, Suspended: t.Suspended, Due: t.Due, Failures: t.Failures, Lost: t.Lost,
		Creator: t.Kind.Creator, LastNode: t.LastNode.String(), Terms: history.TermsOf(&t.Kind.Policy, t.Priority)}
	if t.OnNode() { // Due is the lost stamp then, which moves on with the node; in the fold there is none
		s.Due = 0
	}
	if w := t.Wait; w != nil {
		s.WaitSince, s.SuspendedAt = w.Since, w.SuspendedAt
		if w.Cause != 0 {
			s.WaitCause = w.Cause.String()
		}
	}
	s.Substatus, s.Since, s.Looked = substatus(t, now)
	var err error
	s.Outcome, err = OutcomeOf(t)
	return s, err
}

// Shown records what a read shows of a task.
func Shown(op *history.Operation, t *projection.Task, now time.Time) (err error) {
	op.Status, op.Attempt, op.Terms = t.Status.String(), t.Attempt, history.TermsOf(&t.Kind.Policy, t.Priority)
	op.Substatus, op.Since, op.Looked = substatus(t, now)
	op.Outcome, err = OutcomeOf(t)
	return err
}

func substatus(t *projection.Task, now time.Time) (word string, since, looked events.Millis) {
	looked = events.MillisOf(now)
	is, since := t.Substatus(looked)
	return is.String(), since, looked
}

// List reads every page of a list, and pauses between them.
func List(ctx context.Context, c *engine.Client, f task.Filter, op *history.Operation, pause func()) error {
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := c.ListPage(ctx, f, cursor)
		if err != nil {
			return err
		}
		for i := range page.Tasks {
			op.Listed = append(op.Listed, history.Life{Task: string(page.Tasks[i].ID), Created: page.Tasks[i].Created})
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
	for _, p := range set.Pauses() {
		all = append(all, history.PausedBehavior{Behavior: p.Behavior, Reason: p.Reason, By: p.By, Since: p.Since})
	}
	return history.PausedText(all), err
}
