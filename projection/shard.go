package projection

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"taskledger/events"
	"taskledger/projection/name"
	"taskledger/projection/requests"
	"taskledger/projection/steady"
	"taskledger/task"
)

// Shard is the state of one shard: the fold of its journal. It is not safe for concurrent use.
//
// Every task is in exactly one of these places: waiting for its time (due), waiting for a slot (ready, by
// behavior), running (by node), held after its end for its requests or pinned by an extension, failed for good,
// finished, or, when suspended, none.
type Shard struct {
	Number uint64        // of the last entry applied
	Hash   events.Hash   // of that entry
	Time   events.Millis // of that entry

	id        uint16
	tasks     map[events.TaskID]*Task
	created   creations
	tally     Tally
	bytes     int64 // of the tasks that are unfinished, or held for their requests
	due       queue
	held      queue // finished tasks that are kept for their requests
	pinned    queue // finished tasks that an extension holds
	running   running
	deadlines deadlines
	kinds     map[kindKey]*Kind
	names     name.Table        // of nodes that have run tasks
	latest    *Kind             // asked for; nil = none
	idle      int               // kinds without tasks
	groups    map[string]*group // by behavior
	failed    failures
	retention retention
	forgotten []*Task // by retention, in the entry that is being sealed
	steady    steady.Clock
	senders   senders
	snapshot  *Snapshot // under way; nil = none

	extensions extensions
}

// running holds the tasks of which an attempt runs.
type running struct {
	byNode  map[string]*queue
	byStart map[events.Ref]*Task // few, so that they are found without a search among all
}

// NewShard returns the state before the first entry.
func NewShard(id int) *Shard {
	s := &Shard{
		id:        uint16(id),
		tasks:     map[events.TaskID]*Task{},
		due:       queue{rank: rankDue, before: byCreation},
		held:      queue{rank: rankEnded, before: byOutcome},
		failed:    failures{queue: queue{rank: rankKeepUntil, before: byOutcome}},
		running:   running{byNode: map[string]*queue{}, byStart: map[events.Ref]*Task{}},
		deadlines: deadlines{places: map[*Task]int{}},
		kinds:     map[kindKey]*Kind{},
		names:     name.Table{},
		groups:    map[string]*group{},
		senders:   newSenders(),
	}
	s.extend()
	return s
}

// ID returns the number of the shard among those of its cluster.
func (s *Shard) ID() int { return int(s.id) }

// ErrChain is wrapped when an entry does not continue the journal that was applied so far.
var ErrChain = errors.New("broken chain")

// Replay applies a whole entry. After an error the state is unusable: the journal is damaged.
func (s *Shard) Replay(e *events.Entry) error {
	switch {
	case e.Shard != s.id:
		return fmt.Errorf("%w: entry of shard %d in shard %d", ErrChain, e.Shard, s.id)
	case e.Number != s.Number+1:
		return fmt.Errorf("%w: entry %d after entry %d of shard %d", ErrChain, e.Number, s.Number, s.id)
	case e.Prev != s.Hash:
		return fmt.Errorf("%w: entry %d of shard %d follows hash %s, want %s", ErrChain, e.Number, s.id, e.Prev, s.Hash)
	case e.Time < s.Time:
		return fmt.Errorf("%w: entry %d of shard %d is of %d, the one before of %d", ErrChain, e.Number, s.id, e.Time, s.Time)
	}
	for i := range e.Events {
		if _, err := s.Apply(s.tasks[e.Events[i].Task], &e.Events[i]); err != nil {
			return fmt.Errorf("entry %d of shard %d: %w", e.Number, s.id, err)
		}
	}
	s.Seal(e)
	return nil
}

// Apply folds one event of t, what Task returns of the event's task, and returns the task as it is then; nil after
// Deleted, and for an event of a record that is no task. The event's entry must be completed by Seal. Nothing
// refers to its body afterwards, but to a Failed or Progressed.
func (s *Shard) Apply(t *Task, ev *events.Event) (*Task, error) {
	if ev.Kind().Record() != events.OfTask {
		return nil, s.applyRecord(ev)
	}
	if err := check(t, ev); err != nil {
		return nil, err
	}
	if err := s.allowed(t, ev); err != nil {
		return nil, err
	}
	bounded := false
	if c, ok := ev.Body.(*events.Created); ok {
		t = &Task{
			ID:        ev.Task,
			Kind:      s.kind(kindKey{c.Behavior, c.Policy, cmp.Or(c.Ties.By, ev.Caller.Principal)}),
			Status:    task.Created,
			Priority:  c.Priority,
			Params:    c.Params,
			Run:       c.Ties.Run,
			ParamsAt:  ev.Position.Ref,
			Created:   ev.Position.Ref,
			CreatedAt: ev.At,
			Due:       c.NotBefore,
		}
		s.tasks[t.ID] = t
		s.enlist(t)
	} else {
		bounded = t.Deadline() != 0
		s.keepImage(t)
		s.weigh(t, -1)
		s.lift(t)
		t.fold(ev, s.names)
		s.retype(t, terms(ev.Body))
	}
	t.Seq, t.Last = ev.Seq, ev.Position.Ref
	if ev.RequestID != "" { // what one request does is in one entry, and the last event tells the run
		t.Requests = t.Requests.With(requests.Request{ID: ev.RequestID, Run: t.SharedRun(), At: ev.At})
	}
	if ev.Kind() == events.KindDeleted {
		s.deadlines.drop(t)
		s.delist(t)
		s.saw(t, ev)
		return nil, nil
	}
	if t.Final() {
		t.close()
	}
	if bounded || t.Deadline() != 0 {
		s.deadlines.keep(t)
	}
	s.saw(t, ev)
	s.place(t, ev.At)
	s.weigh(t, 1)
	return t, nil
}

// Seal completes an entry all of whose events were applied: batch numbers are remembered, and what is past its time
// at the entry's time is forgotten.
func (s *Shard) Seal(e *events.Entry) {
	s.Number, s.Hash, s.Time = e.Number, e.Hash, e.Time
	s.steady.Tick(e.Time)
	s.senders.seal(e, &s.steady)
	s.release()
	s.expire(e.Time)
}

// weigh adds what a task takes, or with sign -1 takes it away, to the bytes of those that retention may forget, or
// of those that are unfinished or held for their requests. The task is where it belongs.
func (s *Shard) weigh(t *Task, sign int64) {
	switch t.in {
	case &t.Kind.group.finished:
		s.retention.bytes += sign * t.bytes()
	case &s.failed.queue:
		s.failed.bytes += sign * t.bytes()
	case &s.pinned: // whoever holds them bounds them
	default:
		s.bytes += sign * t.bytes()
	}
}

// lift takes the task out of its queue.
func (s *Shard) lift(t *Task) {
	s.count(t, -1)
	switch {
	case t.in == nil:
		return
	case t.OnNode():
		delete(s.running.byStart, t.Started)
	case t.in == &t.Kind.group.finished:
		s.retention.add(t.Kind.group, -1)
	}
	t.in.remove(t)
}

// place puts the task into the queue where it belongs at the given time.
func (s *Shard) place(t *Task, now events.Millis) {
	switch {
	case t.OnNode():
		s.runningOn(t.Node).add(t)
		s.running.byStart[t.Started] = t
	case t.Final() && s.heldBack(t):
		s.pinned.add(t)
	case t.Final() && s.holds(t):
		s.held.add(t)
	case t.Final() && t.Status == task.Failure:
		s.failed.add(t)
	case t.Final():
		t.Kind.group.finished.add(t)
		s.retention.add(t.Kind.group, 1)
	case t.Suspended:
	case t.Due <= now:
		t.readies().add(t)
	default:
		s.due.add(t)
	}
	s.count(t, 1)
}

func (s *Shard) runningOn(node string) *queue {
	q := s.running.byNode[node]
	if q == nil {
		// Only now, so that a node with one task at a time does not get a queue anew for each.
		maps.DeleteFunc(s.running.byNode, func(_ string, q *queue) bool { return q.len() == 0 })
		q = &queue{}
		s.running.byNode[node] = q
	}
	return q
}

// enlist gives a new task its place among all, and delist takes a task without queue out of the shard.
func (s *Shard) enlist(t *Task) {
	s.created.add(t)
	s.join(t.Kind)
}

func (s *Shard) delist(t *Task) {
	delete(s.tasks, t.ID)
	s.created.remove(t)
	s.imageKept(t)
	s.leave(t.Kind)
}

// NextDeadline returns the earliest deadline of a run, and its task; nil = no run has one.
func (s *Shard) NextDeadline() (*Task, events.Millis) {
	if len(s.deadlines.tasks) == 0 {
		return nil, 0
	}
	t := s.deadlines.tasks[0]
	return t, t.Deadline()
}

// Task returns a task, Attempt that of an attempt which is not over, by its Started; nil = none. Both are read
// only, until the next Apply.
func (s *Shard) Task(id events.TaskID) *Task      { return s.tasks[id] }
func (s *Shard) Attempt(started events.Ref) *Task { return s.running.byStart[started] }

// Attempts yields the tasks of which an attempt runs, in no order.
func (s *Shard) Attempts() iter.Seq[*Task] { return maps.Values(s.running.byStart) }

// Lives reports whether a task that is held was created by an event.
func (s *Shard) Lives(created events.Ref) bool { return s.created.has(created) }

// Len returns the number of tasks.
func (s *Shard) Len() int { return len(s.tasks) }

// Finished returns the number of tasks that are final.
func (s *Shard) Finished() int {
	return s.retention.count + s.failed.len() + s.held.len() + s.pinned.len()
}

// Held returns the number of final tasks that are kept for their requests.
func (s *Shard) Held() int { return s.held.len() }

// Live returns the number of tasks that are not final.
func (s *Shard) Live() int { return len(s.tasks) - s.Finished() }

// LiveBytes is about how much the tasks that are not finished, or are held for their requests, take in a snapshot, and
// the records of extensions: parameters, results, ids and texts, and a fixed amount each.
func (s *Shard) LiveBytes() int64 { return s.bytes + s.extensionBytes() }

// Tasks yields every task, in no order.
func (s *Shard) Tasks() iter.Seq[*Task] { return maps.Values(s.tasks) }

// NextDue returns when the next waiting task becomes ready; 0 = none waits.
func (s *Shard) NextDue() events.Millis {
	if t := s.due.first(); t != nil {
		return t.Due
	}
	return 0
}

// MakeDue moves the tasks whose time has come to the ready order. It is no part of the fold, which has no clock: what
// is ready is a function of the journal and of the latest time given.
func (s *Shard) MakeDue(now events.Millis) (moved bool) {
	for t := s.due.first(); t != nil && t.Due <= now; t = s.due.first() {
		s.count(t, -1)
		s.due.remove(t)
		t.readies().add(t)
		s.count(t, 1)
		moved = true
	}
	return moved
}

// readies is the queue of the task where it is ready.
func (t *Task) readies() *queue {
	if t.Repeats() {
		return &t.Kind.group.repeats
	}
	return &t.Kind.group.ready
}

// Knows reports whether there are tasks of a behavior, or were lately.
func (s *Shard) Knows(behavior string) bool { return s.groups[behavior] != nil }

// Ready returns the first ready task of a behavior, nil if there is none.
func (s *Shard) Ready(behavior string) *Task {
	first := s.ReadyBeside(behavior)
	if g := s.groups[behavior]; g != nil {
		if t := g.repeats.first(); first == nil || t != nil && Before(t, first) {
			return t
		}
	}
	return first
}

// ReadyBeside returns the first ready task of a behavior that is no repetition, as Task.Repeats tells; nil if there
// is none.
func (s *Shard) ReadyBeside(behavior string) *Task {
	if g := s.groups[behavior]; g != nil {
		return g.ready.first()
	}
	return nil
}

// Backlog yields each behavior with ready tasks and their number.
func (s *Shard) Backlog() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for behavior, g := range s.groups {
			if n := g.ready.len() + g.repeats.len(); n > 0 && !yield(behavior, n) {
				return
			}
		}
	}
}

// Readies yields the ready tasks, in no order; the shard must not change meanwhile.
func (s *Shard) Readies() iter.Seq[*Task] {
	return func(yield func(*Task) bool) {
		for _, g := range s.groups {
			for _, q := range [...]*queue{&g.ready, &g.repeats} {
				for t := range q.all() {
					if !yield(t) {
						return
					}
				}
			}
		}
	}
}

// Running yields the tasks that run on a node, in no order; the shard must not change meanwhile.
func (s *Shard) Running(node string) iter.Seq[*Task] {
	if q := s.running.byNode[node]; q != nil {
		return q.all()
	}
	return func(func(*Task) bool) {}
}

// RunningNodes returns the nodes on which tasks run, sorted.
func (s *Shard) RunningNodes() []string {
	var nodes []string
	for node, q := range s.running.byNode {
		if q.len() > 0 {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// Decided returns what is remembered of a sender's lane, nil for an unknown one.
func (s *Shard) Decided(l SenderLane) *Decided { return s.senders.get(l) }

// Senders returns the number of remembered lanes.
func (s *Shard) Senders() int { return s.senders.order.Len() }
