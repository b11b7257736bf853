package projection

import (
	"strings"

	"taskledger/events"
	"taskledger/projection/name"
	"taskledger/task"
)

// fold applies a legal event other than Created.
func (t *Task) fold(ev *events.Event, names name.Table) {
	switch b := ev.Body.(type) {
	case *events.Started:
		if t.RunEnded {
			t.Failures, t.Lost, t.RunEnded = 0, 0, false
		}
		t.Status, t.Node, t.Offer, t.Lease = task.Running, b.Node, b.Offer, b.Lease
		t.Attempt, t.Started, t.StartedAt, t.LastNode = b.Attempt, ev.Position.Ref, ev.At, names.Of(b.Node)
		t.Due, t.Wait, t.ResultElided, t.ErrorElided = 0, nil, false, false
		t.Result, t.Error, t.Progress = nil, nil, nil
	case *events.Progressed:
		t.Progress = b
	case *events.Succeeded:
		t.end(ev, task.Success, b.Next)
		t.Result = b.Result
		t.endRun()
	case *events.Failed:
		t.end(ev, task.Failure, b.Next)
		t.Error = &b.Error
		t.Failures++
		if b.Run != 0 {
			t.endRun()
		}
	case *events.Snoozed:
		t.giveBack(ev, b.Until)
	case *events.Lost:
		t.giveBack(ev, b.Until)
		t.Lost++
	case *events.Released:
		t.giveBack(ev, b.Until)
	case *events.Rescheduled:
		t.reschedule(ev, b.At)
	case *events.Merged:
		t.Params, t.ParamsAt, t.ParamsElided = b.Params, ev.Position.Ref, false
		t.Rerun = t.Rerun || t.OnNode()
	case *events.Suspended:
		t.suspend(ev, b.Reason)
	case *events.Resumed:
		t.resume(ev)
	case *events.CancelRequested:
		t.cancel(ev, b.Reason)
	case *events.Described:
		t.About = describe(b.Tags, b.Deadline)
	}
}

func (t *Task) end(ev *events.Event, status task.Status, next events.Millis) {
	w := t.waited()
	if w.Cause, w.Since = 0, 0; !t.Cancelled {
		w.By, w.Reason = "", ""
	}
	if b, failed := ev.Body.(*events.Failed); failed && !t.OnNode() && !t.Cancelled &&
		b.Error.Code == events.CodeCancelled &&
		ev.Caller.Principal != "" {
		w.By, w.Reason = asked(ev, b.Error.Message)
	}
	t.setWait(w)
	t.Status, t.Node, t.Due = status, "", next
	t.Outcome, t.EndedAt = ev.Position.Ref, ev.At
	t.Result, t.Error, t.Cancelled, t.ResultElided, t.ErrorElided = nil, nil, false, false, false
}

// endRun counts a run that will not be tried again.
func (t *Task) endRun() {
	t.Runs++
	t.RunEnded, t.Rerun = true, false
	if t.Deadline() != 0 {
		t.About = describe(t.Tags(), 0)
	}
}

// close leaves to the journal what a finished task need not hold in memory.
func (t *Task) close() {
	if t.Status == task.Failure && !t.RunEnded { // its schedule was taken away: the run is over
		t.endRun()
	}
	if t.Deadline() != 0 { // of a further run that was cancelled
		t.About = describe(t.Tags(), 0)
	}
	t.ParamsElided = t.ParamsElided || t.Params != nil
	t.Params = nil
	if len(t.Result) > MaxKeptResult {
		t.Result, t.ResultElided = nil, true
	}
	if t.Error != nil && errorBytes(t.Error) > MaxKeptError {
		message := strings.Clone(events.Head(t.Error.Message, MaxKeptError)) // the rest shall be freed
		t.Error = &events.Error{Code: t.Error.Code, Message: message, Retryable: t.Error.Retryable}
		t.ErrorElided = true
	}
}
