package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// Decider decides the commands of one entry, each against the state as the events before it in the entry left it.
// It is pure: the same state, commands and time lead to the same events. It runs no user code.
type Decider struct {
	State    *projection.Shard
	Entry    *events.Builder
	Now      events.Millis
	Wall     events.Millis // of the owner's clock; entry time may be ahead of it
	Origin   int           // of the batch or the caller whose command is being decided; 0 = the owner itself
	Sender   string        // of the batch being decided
	UnderWay time.Duration // since its sender made the batch being decided, by both clocks; never negative
	// ParamsMayGo says that what the journal alone holds may be removed any time: a final task has lost its
	// parameters.
	ParamsMayGo bool

	Members   *store.Membership                          // of the latest view; nil = all nodes read everything
	Oversized *Oversized                                 // nil = none
	Note      func(t *projection.Task, ev *events.Event) // called with every event and its task, nil = none

	// Follow records what fronts let follow an event of a task, once the task is as the event left it; nil = nothing.
	Follow func(d *Decider, ev *events.Event)
	// Stop has the node of an attempt end its function; nil = nobody does.
	Stop func(t *projection.Task, reason string)

	Room
	Ownership

	Highest events.Kind // of the events so far

	// Counts says that the batch being decided is recorded, once a second, even if it causes no event: what it waits
	// for is counted by the entries.
	Counts bool

	Stale int     // late and foreign reports of attempts, so far
	Bugs  []error // of commands whose first event was refused: nothing of them is in the state or the entry
	Err   error   // of a refused event that follows others of its command, or has none: the entry must not be used

	caller  *events.Caller // behind the commands being decided, until it is recorded
	decides bool           // a command, whose decision may be refused
	problem string         // why it must not be recorded; "" = nothing so far
}

// emit records an event of a task, nil for Created, and returns the task as it is after it. An event that the fold
// refuses, or that the entry cannot hold, leaves no trace but Err.
func (d *Decider) emit(id events.TaskID, t *projection.Task, requestID string, body events.Body) *projection.Task {
	ev := events.Event{
		Task:      id,
		Seq:       1,
		RequestID: requestID,
		Body:      body,
	}
	if t != nil {
		ev.Seq, ev.Prev = t.Seq+1, t.Last
	}
	return d.record(t, ev)
}

// EmitRecord records an event of a record of which a shard has one.
func (d *Decider) EmitRecord(body events.Body) {
	ev := events.Event{Body: body}
	ev.Seq, ev.Prev = d.State.Next(body.Kind().Record())
	d.record(nil, ev)
}

// EmitFollowing records an event of a record of which a shard has many: the caller names the event that it follows.
func (d *Decider) EmitFollowing(id events.TaskID, seq uint64, prev events.Ref, requestID string, body events.Body) {
	d.record(nil, events.Event{
		Task:      id,
		Seq:       seq,
		Prev:      prev,
		RequestID: requestID,
		Body:      body,
	})
}

// record records an event, and returns its task as it is after it, if there is one.
func (d *Decider) record(t *projection.Task, ev events.Event) *projection.Task {
	if d.Err != nil || d.unread(ev.Kind()) {
		return t
	}
	ev.Origin = d.origin()
	ran := t != nil && t.OnNode()
	mark := d.Entry.Mark()
	added := d.Entry.Add(ev)
	after, err := t, d.Entry.Holds()
	if err == nil {
		after, err = d.State.Apply(t, added)
	} else {
		err = fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	if err != nil {
		d.Entry.DropAfter(mark)
		d.Err = err
		return t
	}
	if after == nil { // Deleted, or of no task
		d.Note(t, added)
		return nil
	}
	d.Note(after, added)
	if _, failed := added.Body.(*events.Failed); ran && !after.OnNode() || failed {
		d.follow(after, added)
	}
	if d.Follow != nil {
		d.Follow(d, added)
	}
	return after
}

// follow records the events that fronts add to the end of an attempt, or of a task that waited, in its entry. It leaves
// out an event that a present node cannot read: the end itself must not wait for the upgrade of that node.
func (d *Decider) follow(t *projection.Task, ended *events.Event) {
	for _, ev := range d.State.Ended(t, ended) {
		if d.forbids(ev.Kind()) != "" {
			continue
		}
		var of *projection.Task
		if ev.Kind().Record() == events.OfTask {
			of = d.State.Task(ev.Task)
			ev.Seq, ev.Prev = of.Seq+1, of.Last
		}
		d.record(of, ev)
	}
}

// Decide answers one command of LaneSubmit or LaneWork.
func (d *Decider) Decide(c Command) Answer {
	if refusal, refused := RefuseInvalid(c); refused {
		return refusal
	}
	if refusal, refused := d.Shard.Misdirected(c); refused {
		return refusal
	}
	asked, ok := c.(decided)
	if !ok {
		return Misplaced(c, d.Self)
	}
	before, spoilt := len(d.Entry.Entry.Events), d.Err != nil
	a := d.decideReadable(asked)
	if d.Err == nil || spoilt || len(d.Entry.Entry.Events) > before {
		return a
	}
	a = Refused(AnswerBug, "%v", d.Err)
	d.Bugs = append(d.Bugs, fmt.Errorf("command %d of %s: %w", c.Op(), d.Sender, d.Err))
	d.Err = nil
	return a
}

// giveBack lets a task wait that ran without coming to an end; one that was cancelled ends instead.
func (d *Decider) giveBack(t *projection.Task, body events.Body) *projection.Task {
	cancelled := t.Cancelled
	t = d.emit(t.ID, t, "", body)
	if cancelled && d.Err == nil {
		d.fail(t, events.Error{Code: events.CodeCancelled, Message: "cancelled"}, 0)
	}
	return t
}

// Lose records the attempts of a node whose session has ended as lost. It returns false when the entry is full
// before all are recorded.
func (d *Decider) Lose(node string) bool {
	for _, t := range d.runningOn(node) {
		if d.EntryFull() {
			return false
		}
		if t.Node != node { // a loss before it has ended its run
			continue
		}
		until := d.Now.Add(t.Kind.Policy.LostWait(d.losses(t)+1, t.ID, t.Started))
		t = d.giveBack(t, &events.Lost{Until: until, Node: t.Node})
		if d.Err == nil && t.Phase() == projection.Waiting && d.losses(t) >= t.Kind.Policy.MaxLost {
			d.fail(t, events.Error{Code: events.CodeLost, Message: "the nodes that ran it were lost too often"}, 0)
		}
	}
	return true
}

// losses returns how often attempts of a task were lost, as its policy counts.
func (d *Decider) losses(t *projection.Task) int {
	lost, _ := d.State.Tries(t, d.Now)
	return lost
}

// EntryFull reports that the entry takes no further command.
func (d *Decider) EntryFull() bool {
	return !d.empty() && d.Entry.Size() >= min(events.SealEntryBytes, d.Oversized.limit())
}

// empty reports that nothing is in the entry yet.
func (d *Decider) empty() bool { return len(d.Entry.Entry.Events)+len(d.Entry.Entry.Origins) == 0 }

// runningOn returns the tasks on a node in the order they started.
func (d *Decider) runningOn(node string) []*projection.Task {
	return slices.SortedFunc(d.State.Running(node), byStart)
}

func byStart(a, b *projection.Task) int { return cmp.Compare(a.Started, b.Started) }

// Start gives a ready task to a node; offer 0 is the owner's own.
func (d *Decider) Start(t *projection.Task, node string, offer uint64, lease time.Duration) *projection.Task {
	origin := d.Origin
	d.Origin = 0
	defer func() { d.Origin = origin }()
	return d.emit(t.ID, t, "", d.Entry.Started(events.Started{
		Node:    node,
		Attempt: t.Attempt + 1,
		Offer:   offer,
		Lease:   events.Millis(lease.Milliseconds()),
	}))
}

// decideReadable decides a command, or refuses it when a present node cannot read the kind of its first event.
func (d *Decider) decideReadable(c decided) Answer {
	d.decides, d.problem = true, ""
	before := len(d.Entry.Entry.Events)
	a := c.Decide(d)
	problem := d.problem
	d.decides, d.problem = false, ""
	if problem == "" {
		return a
	}
	if d.Err == nil && len(d.Entry.Entry.Events) > before {
		d.Err = fmt.Errorf("half of a command is decided: %s", problem)
	}
	return Refused(AnswerState, "%s", problem)
}

// unread reports that no event of a kind may be recorded, because a present node cannot read it. It refuses the
// command that is being decided, with all further events of it.
func (d *Decider) unread(kind events.Kind) bool {
	if d.problem != "" {
		return true
	}
	switch why := d.forbids(kind); {
	case why == "":
		d.Highest = max(d.Highest, kind)
		return false
	case d.decides:
		d.problem = why
	default:
		d.Err = errors.New(why)
	}
	return true
}

// forbids says which node that is present cannot read events of a kind; "" = all can.
func (d *Decider) forbids(kind events.Kind) string {
	if kind <= d.Highest || d.Members == nil {
		return ""
	}
	return d.Members.Outdated(store.Reads{Kind: kind})
}
