// Package projection folds the events of a shard into the state of its tasks and the orders in which they are due,
// ready and forgotten. It is pure: what it holds is a function of the entries applied, and time enters as an argument.
// Callers get a task.Task, which package taskview makes of a Task.
package projection

import (
	"cmp"
	"time"

	"taskledger/events"
	"taskledger/projection/name"
	"taskledger/projection/requests"
	"taskledger/task"
)

// Task is the state of one task: the fold of its events. Values handed out by a Shard change with it; copy to keep.
type Task struct {
	ID       events.TaskID
	Kind     *Kind
	Priority int64
	Params   events.Payload // JSON
	ParamsAt events.Ref     // the event that carries Params

	Status task.Status
	Flags
	Run       events.RunOrigin // of a run of a schedule that is named by a UUID: what made it
	Forgotten bool             // retention has taken it out of memory; never in a fold, only where one was read back

	Seq     uint64     // of the last event
	Created events.Ref // names the life
	Last    events.Ref // the last event: the version of the task
	Outcome events.Ref // the last Succeeded or Failed

	Counts
	LastAttempt

	CreatedAt events.Millis
	EndedAt   events.Millis // of Outcome; a further run may have been promised after it, and cancelled
	// Due is when the task may start: the schedule of one that does not run, the lost stamp of one that waits to run
	// again. 0 = never, as things stand.
	Due  events.Millis
	Wait *Wait // nil = the other fields tell why it does not run, and since when

	Result   events.Payload // SUCCESS only
	Error    *events.Error  // FAILURE only
	Progress *events.Progressed
	Requests requests.List // those that made, changed or joined it
	About    *Description  // nil = neither tags nor a deadline; never changed

	indexed
}

// Counts counts the attempts and runs of a task.
type Counts struct {
	Attempt  uint32 // attempts started in this life
	Failures uint32 // attempts of this run that failed
	Lost     uint32 // attempts of this run that were lost
	Runs     uint32 // runs of this life that ended: with SUCCESS, or with a FAILURE that is not retried
}

// LastAttempt describes the attempt of a task that started last.
type LastAttempt struct {
	Started   events.Ref // names the attempt; its fencing token
	StartedAt events.Millis
	Node      string    // session id of the node that runs it; "" = none
	LastNode  name.Name // session id of the node that ran it
	Offer     uint64    // that Started answered; 0 = started by the owner on its own node
	Lease     events.Millis
}

// indexed locates a task in the queues and the creations of its shard.
type indexed struct {
	in  *queue // the one queue it is in, if any
	at  uint32 // its place there: its number in the line, or its index in the heap
	row uint32 // its place in Shard.created
}

// taskBytes counts the bytes of a task in a snapshot besides its texts and payloads, rounded up.
const taskBytes = 100

// bytes counts what the task adds to LiveBytes.
func (t *Task) bytes() int64 {
	n := taskBytes + len(t.ID) + len(t.Params) + len(t.Result) + t.Requests.Bytes()
	if t.Progress != nil {
		n += len(t.Progress.Note)
	}
	if t.Wait != nil {
		n += len(t.Wait.By) + len(t.Wait.Reason) + len(t.Wait.SuspendedBy) + len(t.Wait.SuspendedFor)
	}
	if t.Error != nil {
		n += len(t.Error.Code) + errorBytes(t.Error)
	}
	return int64(n) + t.About.bytes()
}

// errorBytes counts the message and the properties of an error.
func errorBytes(e *events.Error) int {
	n := len(e.Message)
	for name, value := range e.Properties {
		n += len(name) + len(value)
	}
	return n
}

// HoldRequests is the time, as package steady counts, for which a finished task is held that requests with a key have
// made, changed or joined: who repeats one of them meets the task. The time begins with its last outcome, when a
// further run that was promised after that was cancelled, or with the latest request that joined it since. The task is
// forgotten no earlier, whatever the policy says. The tasks that are held count as live ones against what a shard may
// have, so that new tasks are refused before held ones would be too many.
const HoldRequests = 10 * time.Minute

// MaxKeptResult is the size of a result that a finished task keeps in memory; larger ones are read from the journal.
const MaxKeptResult = 1 << 10

// MaxKeptError bounds what a task that has failed for good keeps in memory of the message and properties of its
// error. Of a larger one it keeps the code and the beginning of the message.
const MaxKeptError = 1 << 10

// Elided reports whether the task has left something to the journal that it does not hold.
func (t *Task) Elided() bool {
	return t.ParamsElided && t.Params == nil || t.ResultElided && t.Result == nil || t.ErrorElided
}

// Final reports that the task has ended and will not run again unless somebody asks.
func (t *Task) Final() bool {
	return (t.Status == task.Success || t.Status == task.Failure) && t.Due == 0
}

// Repeats reports that the next run is a repetition as its behavior or policy wants it: nobody has asked for that run.
func (t *Task) Repeats() bool {
	return t.RunEnded && t.Due != 0 && t.waited().Since == 0 && (t.Status == task.Success || t.Status == task.Failure)
}

// Tags returns the tags of the task, in order. They are the task's own: read only.
func (t *Task) Tags() []string {
	if t.About == nil {
		return nil
	}
	return t.About.Tags
}

// Deadline returns when the run of the task fails unless it has ended; 0 = it has no deadline.
func (t *Task) Deadline() events.Millis {
	if t.About == nil {
		return 0
	}
	return t.About.Deadline
}

// OnNode reports that an attempt runs.
func (t *Task) OnNode() bool { return t.Node != "" }

// RunOf returns what made the task, if it is a run of a schedule; 0 = it is none.
func (t *Task) RunOf() events.RunOrigin { return cmp.Or(t.Run, events.OriginOf(t.ID)) }

// ScheduleNotBefore returns when a task that is not RUNNING runs next; 0 = never.
func (t *Task) ScheduleNotBefore() events.Millis {
	if t.Status == task.Running {
		return 0
	}
	return t.Due
}

// LostNotBefore returns from when on a RUNNING task may run again; 0 for others. Of a running attempt it is a lease
// after its start, and as an owner serves it a lease after the owner last saw its node.
func (t *Task) LostNotBefore() events.Millis {
	switch {
	case t.Status != task.Running:
		return 0
	case t.OnNode():
		return max(t.StartedAt+t.Lease, t.Due)
	}
	return t.Due
}

// RecheckNotBefore returns from when on a look at a RUNNING task may show something new; 0 for others. Of a running
// attempt it comes two thirds of a lease before LostNotBefore.
func (t *Task) RecheckNotBefore() events.Millis {
	if t.OnNode() {
		return t.LostNotBefore() - t.Lease + t.Lease/3
	}
	return t.LostNotBefore()
}

// Sight moves the two stamps of a running attempt, in a copy that is served, on to those of a node that was seen at a
// time. Due, which is 0 in the fold, is then the lost stamp.
func (t *Task) Sight(at events.Millis) {
	if t.OnNode() && at > t.StartedAt {
		t.Due = at + t.Lease
	}
}

// heldFrom returns when the time began for which a finished task is held for its requests.
func (t *Task) heldFrom() events.Millis { return max(t.waitsSince(), t.Requests.Latest()) }

// keepUntil returns when a finished task may be forgotten that is not held.
func (t *Task) keepUntil() events.Millis {
	if t.Status == task.Failure {
		return t.waitsSince().Add(RetainFailures)
	}
	return t.waitsSince().Add(t.Kind.Policy.Retain)
}

// SharedRun is the run that a submit gets which shares the task as it is: the one that is due or under way, else the
// one that ended last. Where parameters wait for a further run, it is that one.
func (t *Task) SharedRun() uint32 {
	run := t.Runs
	if !t.Final() {
		run++
	}
	if t.Rerun {
		run++
	}
	return run
}
