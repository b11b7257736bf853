package projection

import (
	"taskledger/events"
	"taskledger/task"
)

// Life folds the events of one life of a task, from the first on, and keeps what a fold leaves to the journal: the
// parameters, and the result or the error of a task that has ended.
type Life struct {
	shard   *Shard
	now     *Task // nil before the first event, and after Deleted
	deleted bool
	params  events.Payload
	result  events.Payload
	failure *events.Error
}

// NewLife returns a life before its first event.
func NewLife() *Life { return &Life{shard: NewShard(0)} }

// Add folds the next event, and returns an error if there can be none like it.
func (l *Life) Add(ev *events.Event) (err error) {
	if l.now, err = l.shard.Apply(l.now, ev); err != nil {
		return err
	}
	l.deleted = l.now == nil
	switch b := ev.Body.(type) {
	case *events.Created:
		l.params = b.Params
	case *events.Merged:
		l.params = b.Params
	case *events.Succeeded:
		l.result, l.failure = b.Result, nil
	case *events.Failed:
		l.result, l.failure = nil, &b.Error
	}
	return nil
}

// Deleted reports whether the life has ended.
func (l *Life) Deleted() bool { return l.deleted }

// Task returns the task as it is now, with its parameters and its whole result or error; the zero Task before the
// first event and after Deleted.
func (l *Life) Task() (t Task) {
	if l.now == nil {
		return t
	}
	t = *l.now
	if t.Params = l.params; t.Status == task.Success || t.Status == task.Failure {
		t.Result, t.Error = l.result, l.failure
	}
	t.ParamsElided, t.ResultElided, t.ErrorElided = false, false, false
	return t
}
