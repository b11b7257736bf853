package command

import (
	"cmp"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// Operate is an operation on a task.
type Operate struct {
	Task   events.TaskID
	Do     task.Operation
	Reason string
	Seen   events.Ref // its last event, as the operator has seen it; 0 = whatever it is
}

// The operations, under the names that decisions use.
const (
	DoCancel  = task.Cancel
	DoRunNow  = task.RunNow
	DoRetry   = task.Retry
	DoSuspend = task.Suspend
	DoResume  = task.Resume
	DoDelete  = task.Delete
)

func (*Operate) Op() uint64 { return opOperate }

func (c *Operate) Shard(count int) int { return c.Task.Shard(count) }

func (c *Operate) Size() int {
	n := commandBytes + len(c.Task) + len(c.Reason)
	if c.Do == DoRetry { // parameters that follow from the state: they name the task
		n += retryBytes + 7*len(c.Task)
	}
	return n
}

// retryBytes bounds the event by which a retry brings parameters, without the texts in it.
const retryBytes = 256

func (c *Operate) Limits() error {
	if c.Do >= task.OperationCount {
		problem := fmt.Sprintf("%d, want less than %d", uint64(c.Do), uint64(task.OperationCount))
		return &store.InvalidError{Field: "operation", Problem: problem}
	}
	return cmp.Or(limitID(c.Task), limitNote("reason", c.Reason))
}

func (c *Operate) Decide(d *Decider) Answer {
	if d.StoreFull { // an entry would wait for room, and delay all behind it
		return d.noSpace()
	}
	t := d.State.Task(c.Task)
	if t == nil {
		return Answer{Code: AnswerNotFound}
	}
	if c.Seen != 0 && t.Last != c.Seen {
		return Answer{Code: AnswerChanged}
	}
	if c.Do == DoRetry && d.paramsGone(t) {
		return d.retryMade(t)
	}
	body, ok := d.operation(t, c)
	if !ok {
		return Refused(AnswerState, "cannot %s while %s", c.Do, describe(t))
	}
	if lead, along := d.State.Crew().MadeFor(t.ID); along && body != nil && (c.Do == DoSuspend || c.Do == DoResume) {
		return Refused(AnswerState, "cannot %s a worker alone, which goes along with task %s: %[1]s that", c.Do, lead)
	}
	if c.Do == DoDelete {
		if t = d.retire(t); d.leadsOthers(t) {
			return Refused(AnswerState, "cannot delete yet: the tasks that it leads are being ended, so delete it again")
		}
	}
	if body != nil {
		d.emit(t.ID, t, "", body)
	}
	return Answer{Life: t.Created}
}

// retryMade retries a task whose parameters nothing keeps. Only of one that was made for another one may the state tell
// them: whoever retries any other one brings them.
func (d *Decider) retryMade(t *projection.Task) Answer {
	params := d.State.Crew().Params(t.ID)
	if params == nil {
		return Answer{Code: AnswerMerge}
	}
	t = d.emit(t.ID, t, "", &events.Rescheduled{At: d.Now})
	d.emit(t.ID, t, "", &events.Merged{Params: params})
	return Answer{Life: t.Created}
}

// retire takes the next run away from a task that is to be deleted and leads others: that ends them, which nobody would
// know once the task is gone.
func (d *Decider) retire(t *projection.Task) *projection.Task {
	if t.Final() || t.Phase() == projection.IsCreated || !d.State.Crew().Leads(t.ID) {
		return t
	}
	return d.emit(t.ID, t, "", &events.Rescheduled{Reason: "deleted"})
}

// leadsOthers reports whether a task leads one that goes on, since the entry had no room for its end.
func (d *Decider) leadsOthers(t *projection.Task) bool {
	return slices.ContainsFunc(d.State.Crew().Led(t.ID), func(id events.TaskID) bool {
		led := d.State.Task(id)
		return id != t.ID && led != nil && !led.Final() && !led.Cancelled
	})
}

// operation returns the event of what an operator asks; none when it is so already; false when the state forbids it.
func (d *Decider) operation(t *projection.Task, c *Operate) (events.Body, bool) {
	waits := t.Phase() == projection.IsCreated || t.Phase() == projection.Waiting
	switch c.Do {
	case DoCancel:
		switch {
		case waits:
			why := events.Error{Code: events.CodeCancelled, Message: cmp.Or(c.Reason, "cancelled")}.Fit()
			return &events.Failed{Error: why, Run: t.Runs + 1}, true
		case t.OnNode() && t.Cancelled:
			return nil, true
		case t.OnNode():
			return &events.CancelRequested{Reason: c.Reason}, true
		}
		return &events.Rescheduled{Reason: c.Reason}, !t.Final()
	case DoRunNow:
		if t.OnNode() || t.Final() {
			return nil, false
		}
		return d.reschedule(t), true
	case DoRetry:
		if t.Status != task.Success && t.Status != task.Failure {
			return nil, false
		}
		return d.reschedule(t), true
	case DoSuspend:
		return unless(t.Suspended, &events.Suspended{Reason: c.Reason}), !t.Final()
	case DoResume:
		return unless(!t.Suspended, &events.Resumed{}), true
	case DoDelete:
		return &events.Deleted{}, t.Status != task.Running
	}
	return nil, false
}

func (d *Decider) reschedule(t *projection.Task) events.Body {
	return unless(t.Due != 0 && t.Due <= d.Now, &events.Rescheduled{At: d.Now})
}

func unless(done bool, body events.Body) events.Body {
	if done {
		return nil
	}
	return body
}

func describe(t *projection.Task) string {
	if t.Final() {
		return t.Phase().String() + ", final"
	}
	return t.Phase().String()
}
