package projection

import (
	"fmt"

	"taskledger/events"
)

// check reports an event that its task's state does not allow.
func check(t *Task, ev *events.Event) error {
	from := t.Phase()
	to, legal := Next(from, ev.Kind())
	refuse := func(format string, args ...any) error {
		if !legal {
			to = from
		}
		return &TransitionError{
			Task:    ev.Task,
			Seq:     ev.Seq,
			Kind:    ev.Kind(),
			From:    from,
			To:      to,
			Problem: fmt.Sprintf(format, args...),
		}
	}
	switch {
	case !legal:
		return refuse("not in the state matrix")
	case t == nil && (ev.Seq != 1 || ev.Prev != 0):
		return refuse("the first event of a life has sequence 1 and no predecessor")
	case t == nil:
		return checkCreated(ev.Body.(*events.Created), refuse)
	case ev.Seq != t.Seq+1:
		return refuse("sequence %d follows %d", ev.Seq, t.Seq)
	case ev.Prev != t.Last:
		return refuse("predecessor %d, the task's last event is %d", ev.Prev, t.Last)
	}
	switch b := ev.Body.(type) {
	case *events.Started:
		switch {
		case b.Node == "" || b.Attempt != t.Attempt+1:
			return refuse("attempt %d on node %q follows attempt %d", b.Attempt, b.Node, t.Attempt)
		case t.Due == 0 || t.Due > ev.At || t.Suspended || t.Cancelled:
			return refuse("not eligible: due %d at %d, suspended %t, cancelled %t", t.Due, ev.At, t.Suspended, t.Cancelled)
		}
	case *events.Succeeded:
		return checkEnd(t, b.Next, b.Run, t.Runs+1, refuse)
	case *events.Failed:
		if from == IsFailure && (t.Due == 0 || t.RunEnded || b.Run == 0) {
			return refuse("it has failed, and no retry is taken away from it")
		}
		if b.Next != 0 && b.Run == 0 { // it is retried
			return checkEnd(t, b.Next, 0, 0, refuse)
		}
		return checkEnd(t, b.Next, b.Run, t.Runs+1, refuse)
	case *events.Snoozed:
		return checkWait(b.Until, ev.At, refuse)
	case *events.Lost:
		return checkGivenUp(t, b.Node, b.Until, ev.At, refuse)
	case *events.Released:
		return checkGivenUp(t, b.Node, b.Until, ev.At, refuse)
	case *events.Rescheduled:
		if b.At == 0 && (from == IsCreated || from == Waiting) {
			return refuse("a task that waits must have a time")
		}
	}
	return nil
}

// checkWait keeps the lost stamp of a task that waits to run again from preceding its start.
func checkWait(until, now events.Millis, refuse func(string, ...any) error) error {
	if until < now {
		return refuse("waits until %d, it is %d", until, now)
	}
	return nil
}

// checkGivenUp is checkWait of an attempt that did not end on its own.
func checkGivenUp(t *Task, node string, until, now events.Millis, refuse func(string, ...any) error) error {
	if node != "" && node != t.Node {
		return refuse("on node %q, it ran on %q", node, t.Node)
	}
	return checkWait(until, now, refuse)
}

func checkCreated(c *events.Created, refuse func(string, ...any) error) error {
	if err := events.ValidateBehavior(c.Behavior); err != nil {
		return refuse("%v", err)
	}
	if c.NotBefore <= 0 {
		return refuse("no scheduled time")
	}
	return nil
}

func checkEnd(t *Task, next events.Millis, run, want uint32, refuse func(string, ...any) error) error {
	if t.Cancelled && next != 0 {
		return refuse("a cancelled task has a next run")
	}
	if run != want {
		return refuse("ends run %d, want %d", run, want)
	}
	return nil
}
