package projection

import (
	"taskledger/events"
	"taskledger/task"
)

// Substatus returns the task's substatus at a time, and since when it has it. What is paused, or has no node to run on,
// is ready all the same: a task knows of itself alone.
func (t *Task) Substatus(now events.Millis) (s task.Substatus, since events.Millis) {
	since = t.waitsSince()
	switch s = t.substatus(t.Due <= now); s {
	case task.SubRunning:
		since = t.StartedAt
	case task.SubSuspended:
		since = t.waited().SuspendedAt
	case task.SubReady:
		since = max(since, t.Due)
	}
	return s, since
}

// substatus is the task's substatus where its time has come, or has not.
func (t *Task) substatus(due bool) task.Substatus {
	switch {
	case t.OnNode():
		return task.SubRunning
	case t.Final() && t.Error != nil && t.Error.Code == events.CodeCancelled:
		return task.SubCancelled
	case t.Final():
		return task.SubFinal
	case t.Suspended:
		return task.SubSuspended
	case due:
		return task.SubReady
	case t.Status == task.Running:
		return waitsFor[t.waited().Cause]
	case t.Status == task.Failure && !t.RunEnded:
		return task.SubRetry
	}
	return task.SubScheduled
}

// waitsFor is the substatus of a RUNNING task on no node, by the cause.
var waitsFor = map[events.Kind]task.Substatus{
	events.KindSnoozed:  task.SubSnoozed,
	events.KindLost:     task.SubLost,
	events.KindReleased: task.SubReleased,
}

// waitsSince returns since when the task waits as it does, or has ended.
func (t *Task) waitsSince() events.Millis {
	switch since := t.waited().Since; {
	case since != 0:
		return since
	case t.Status == task.Created:
		return t.CreatedAt
	}
	return t.EndedAt
}

// Changed returns when the last change began that its substatus depends on.
func (t *Task) Changed() events.Millis {
	w := t.waited()
	return max(t.CreatedAt, t.StartedAt, t.EndedAt, w.Since, w.SuspendedAt)
}

// Tally tells how many tasks have a status and a substatus.
type Tally [task.Failure + 1][task.SubCancelled + 1]int32
