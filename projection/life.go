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
	at      events.Millis // of the last event
	shared  bool          // extensions keep some of the life, which a Mark has not
}

// NewLife returns a life before its first event.
func NewLife() *Life { return &Life{shard: NewShard(0)} }

// Add folds the next event, and returns an error if there can be none like it.
func (l *Life) Add(ev *events.Event) (err error) {
	if l.now, err = l.shard.Apply(l.now, ev); err != nil {
		return err
	}
	l.deleted, l.at = l.now == nil, ev.At
	l.shared = l.shared || l.shard.extensions.byKind[ev.Kind()] != nil
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

// Mark is a life after one of its events: its fold can go on from there as often as somebody wants. It is never
// changed.
type Mark struct {
	now     Task
	params  events.Payload
	result  events.Payload
	failure *events.Error
	at      events.Millis
}

// Mark returns the life as it is now. It reports false before the first event and after Deleted, and for a life of
// which extensions keep some, as that of a task with a work: its fold begins with the first event.
func (l *Life) Mark() (m *Mark, ok bool) {
	if l.now == nil || l.shared {
		return nil, false
	}
	m = &Mark{*l.now, l.params, l.result, l.failure, l.at}
	m.now.indexed = indexed{}
	return m, true
}

// At returns the time of the last event before the mark.
func (m *Mark) At() events.Millis { return m.at }

// Bytes returns about how many bytes the mark takes, with payloads that other marks of the life may share.
func (m *Mark) Bytes() int64 {
	n := m.now.bytes() + int64(len(m.params)+len(m.result))
	if m.failure != nil {
		n += int64(errorBytes(m.failure))
	}
	return n
}

// Resume returns a life that goes on from the mark.
func (m *Mark) Resume() *Life {
	s, t := NewShard(0), m.now
	t.Kind = s.kind(kindKey{t.Kind.Behavior, t.Kind.Policy, t.Kind.Creator})
	s.tasks[t.ID] = &t
	s.enlist(&t)
	if t.Deadline() != 0 {
		s.deadlines.keep(&t)
	}
	s.place(&t, m.at)
	s.weigh(&t, 1)
	return &Life{
		shard:   s,
		now:     &t,
		params:  m.params,
		result:  m.result,
		failure: m.failure,
		at:      m.at,
	}
}
