package command

import (
	"taskledger/events"
	"taskledger/projection"
)

// MayCreate refuses a task with so many bytes of parameters if there is no room for it.
func (d *Decider) MayCreate(bytes int) (refusal Answer, refused bool) {
	if d.StoreFull { // an entry would wait for room, and delay all behind it
		return d.noSpace(), true
	}
	return d.noRoom(true, bytes)
}

// Create records that a task is created, which must not be there, and returns it; nil if that is refused.
func (d *Decider) Create(id events.TaskID, body *events.Created) *projection.Task {
	return d.emit(id, nil, "", body)
}

// Cancel ends a task on behalf of a front as an operator would. A task that has ended for good is left as it is.
func (d *Decider) Cancel(t *projection.Task, reason string) {
	body, ok := d.operation(t, &Operate{Task: t.ID, Do: DoCancel, Reason: reason})
	if ok && body != nil {
		d.emit(t.ID, t, "", body)
	}
}

// Join records that a request shares a task as it is, so that the same request is known when it comes again, and
// answers it. Without a key, and while there is no room for more, nothing is recorded.
func (d *Decider) Join(t *projection.Task, request string) Answer {
	if request != "" && t.Requests.Of(request) == nil && !d.requestsFull(t) && d.mayRecordJoin() {
		t = d.emit(t.ID, t, request, &events.Joined{})
	}
	return joined(t)
}

// Emit records an event of a task, and returns the task as it is after it.
func (d *Decider) Emit(t *projection.Task, body events.Body) *projection.Task {
	return d.emit(t.ID, t, "", body)
}

// EndAttempt has the node of a task end the attempt that it runs. How the attempt ends is for its function to report.
func (d *Decider) EndAttempt(t *projection.Task, reason string) {
	if d.Stop != nil && t.OnNode() {
		d.Stop(t, reason)
	}
}

// FailTask ends the run of a task as failed, whatever an attempt does that runs, and although a retry is to come. A run
// that has ended stays as it is.
func (d *Decider) FailTask(t *projection.Task, why events.Error) {
	if t.Final() || t.RunEnded {
		return
	}
	d.EndAttempt(t, why.Message)
	d.fail(t, why, 0)
}

// Joined answers a command that shares a task which is there.
func Joined(t *projection.Task) Answer { return joined(t) }
