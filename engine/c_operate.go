package engine

import (
	"cmp"
	"fmt"

	"taskledger/events"
	"taskledger/projection"
)

// operateCommand is what an operator asks of a task.
type operateCommand struct {
	Task   events.TaskID
	Do     operation
	Reason string
}

type operation uint64

const (
	doCancel operation = iota
	doRunNow
	doRetry
	doSuspend
	doResume
	doDelete
	operationCount
)

var operationNames = [operationCount]string{"cancel", "run", "retry", "suspend", "resume", "delete"}

func (o operation) String() string { return operationNames[o] }

func (*operateCommand) op() uint64 { return opOperate }

func (c *operateCommand) size() int { return commandBytes + len(c.Task) + len(c.Reason) }

// Check refuses an operation that there is not.
func (c *operateCommand) Check() error {
	if c.Do >= operationCount {
		return fmt.Errorf("operation %d", uint64(c.Do))
	}
	return nil
}

func (c *operateCommand) decide(d *decider) answer {
	if d.storeFull { // what needs an entry would wait for room, and hold up all behind it
		return d.noSpace()
	}
	t := d.state.Task(c.Task)
	if t == nil {
		return answer{code: answerNotFound}
	}
	if c.Task == events.Settings {
		return refused(answerState, "the settings of the cluster are no task to %s", c.Do)
	}
	if c.Do == doRetry && d.forgot(t) {
		return answer{code: answerMerge}
	}
	body, ok := d.operation(t, c)
	if !ok {
		return refused(answerState, "cannot %s while %s", c.Do, describe(t))
	}
	if body != nil {
		d.emit(t.ID, t, "", body)
	}
	return answer{life: t.Created}
}

// operation returns the event of what an operator asks; none when it is so already; false when the state forbids it.
func (d *decider) operation(t *projection.Task, c *operateCommand) (events.Body, bool) {
	waits := t.Phase() == projection.IsCreated || t.Phase() == projection.Waiting
	switch c.Do {
	case doCancel:
		switch {
		case waits:
			return &events.Failed{Error: events.Error{Code: events.CodeCancelled, Message: cmp.Or(c.Reason, "cancelled")}.Fit(), Run: t.Runs + 1}, true
		case t.OnNode() && t.Cancelled:
			return nil, true
		case t.OnNode():
			return &events.CancelRequested{Reason: c.Reason[:min(len(c.Reason), events.MaxNameBytes)]}, true
		}
		return &events.Rescheduled{}, !t.Final()
	case doRunNow:
		if t.OnNode() || t.Final() {
			return nil, false
		}
		return d.reschedule(t), true
	case doRetry:
		if t.Status != projection.Success && t.Status != projection.Failure {
			return nil, false
		}
		return d.reschedule(t), true
	case doSuspend:
		return unless(t.Suspended, &events.Suspended{}), !t.Final()
	case doResume:
		return unless(!t.Suspended, &events.Resumed{}), true
	}
	return &events.Deleted{}, t.Status != projection.Running
}

func (d *decider) reschedule(t *projection.Task) events.Body {
	return unless(t.Due != 0 && t.Due <= d.now, &events.Rescheduled{At: d.now})
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
