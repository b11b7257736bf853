package projection

import (
	"strings"

	"taskledger/events"
)

// Wait holds the reasons why a task does not run that its other fields do not tell. It is never changed; a task of
// which there is nothing to tell has none.
type Wait struct {
	// Cause is the kind of the event that took a RUNNING task off its node: Snoozed, Lost or Released; 0 for any
	// other task.
	Cause events.Kind
	// Since is when that happened, or when the task was last rescheduled, or resumed after its time had come; 0 =
	// not since its status began.
	Since       events.Millis
	SuspendedAt events.Millis // 0 = it is not suspended
	// By is the principal who has cancelled the task or has taken its next run away, and Reason is why; "" = nobody
	// has, or nobody knows.
	By, Reason string
	// SuspendedBy is the principal who has suspended the task, and SuspendedFor the reason: another principal may
	// have cancelled it.
	SuspendedBy, SuspendedFor string
}

// asked returns who has asked for an event, and why.
func asked(ev *events.Event, reason string) (who, why string) {
	return strings.Clone(ev.Caller.Principal), strings.Clone(reason) // the rest of the entry shall be freed
}

// waited returns what is told of the task's wait.
func (t *Task) waited() Wait {
	if t.Wait == nil {
		return Wait{}
	}
	return *t.Wait
}

func (t *Task) setWait(w Wait) {
	t.Wait = nil
	if w != (Wait{}) {
		kept := w // most tasks have none, and must not pay for one
		t.Wait = &kept
	}
}

// giveBack takes the task off its node, to run again from a time on.
func (t *Task) giveBack(ev *events.Event, until events.Millis) {
	t.Node, t.Due = "", until
	w := t.waited()
	w.Cause, w.Since = ev.Kind(), ev.At
	t.setWait(w)
}

func (t *Task) reschedule(ev *events.Event, due events.Millis) {
	w := t.waited()
	w.Since, w.By, w.Reason = ev.At, "", ""
	if due == 0 {
		w.By, w.Reason = asked(ev, ev.Body.(*events.Rescheduled).Reason)
	}
	t.setWait(w)
	t.Due = due
}

// cancel notes who wants the running attempt to end, and why.
func (t *Task) cancel(ev *events.Event, reason string) {
	w := t.waited()
	w.By, w.Reason = asked(ev, reason)
	t.setWait(w)
	t.Cancelled = true
}

func (t *Task) suspend(ev *events.Event, reason string) {
	if !t.Suspended {
		w := t.waited()
		w.SuspendedAt = ev.At
		w.SuspendedBy, w.SuspendedFor = asked(ev, reason)
		t.setWait(w)
	}
	t.Suspended = true
}

func (t *Task) resume(ev *events.Event) {
	w := t.waited()
	if t.Suspended && t.Due != 0 && t.Due <= ev.At {
		w.Since = ev.At
	}
	w.SuspendedAt, w.SuspendedBy, w.SuspendedFor = 0, "", ""
	t.setWait(w)
	t.Suspended = false
}

// problem says what keeps it from being told of the task, "" if nothing does.
func (w Wait) problem(t *Task) string {
	switch {
	case (w.Cause != 0) != (t.Phase() == Waiting):
		return "waits without a cause, or has one and does not wait"
	case w.Cause != 0 && w.Cause != events.KindSnoozed && w.Cause != events.KindLost && w.Cause != events.KindReleased:
		return "waits because of " + w.Cause.String()
	case w.Cause != 0 && w.Since == 0, t.OnNode() && w.Since != 0, w.Since != 0 && w.Since < t.CreatedAt:
		return "waits since another time"
	case t.Suspended != (w.SuspendedAt != 0), w.SuspendedAt != 0 && w.SuspendedAt < t.CreatedAt:
		return "suspended without a time, or before it was created"
	case w.SuspendedAt == 0 && (w.SuspendedBy != "" || w.SuspendedFor != ""):
		return "not suspended, and yet by somebody"
	}
	return ""
}
