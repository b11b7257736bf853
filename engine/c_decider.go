package engine

import (
	"cmp"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/projection"
)

// decider decides the commands of one entry, each against the state as the events before it in the entry left it. It is
// pure: the same state, commands and time lead to the same events. It runs no user code.
type decider struct {
	state     *projection.Shard
	entry     *events.Builder
	now       events.Millis
	wall      events.Millis // of the owner's clock; entry time may be ahead of it
	origin    int           // of the batch being decided; 0 = the owner itself
	sender    string        // of the batch being decided
	brake     string        // why no submit adds anything; "" = submits do
	storeFull bool          // the store is known to be full: nothing can be recorded
	drop      bool          // what the journal alone holds may be dropped any time, and the parameters of a final task with it

	liveLimit int64                                      // bytes of live tasks; 0 = any
	note      func(t *projection.Task, ev *events.Event) // called with every event and the task after it

	// Of the ownership, for the attempts that a node reports.
	self           string                              // session of the owner
	epoch          int64                               // of its ownership
	began          uint64                              // the first entry of that
	offersAnswered func(sender string, through uint64) // called when a node has the answers to its offers up to a number

	refused int   // late and foreign reports of attempts, so far
	err     error // of the first event that the fold refused: a bug; nothing of the entry may be used
}

// emit records an event of a task, nil for Created, and returns the task as it is after it.
func (d *decider) emit(id events.TaskID, t *projection.Task, requestID string, body events.Body) *projection.Task {
	ev := events.Event{Task: id, Seq: 1, Origin: d.origin, RequestID: requestID, Body: body}
	if t != nil {
		ev.Seq, ev.Prev = t.Seq+1, t.Last
	}
	if d.err != nil {
		return t
	}
	added := d.entry.Add(ev)
	after, err := d.state.Apply(t, added)
	if err != nil {
		d.err = err
		return t
	}
	if after == nil { // Deleted
		d.note(t, added)
		return nil
	}
	d.note(after, added)
	return after
}

// decide answers one command of laneSubmit or laneWork.
func (d *decider) decide(c command) answer {
	if c, ok := c.(decided); ok {
		return c.decide(d)
	}
	return refused(answerInvalid, "command %d is not for this lane", c.op())
}

// giveBack lets a task wait that ran without coming to an end; one that was cancelled ends instead.
func (d *decider) giveBack(t *projection.Task, body events.Body) *projection.Task {
	cancelled := t.Cancelled
	t = d.emit(t.ID, t, "", body)
	if cancelled && d.err == nil {
		d.fail(t, events.Error{Code: events.CodeCancelled, Message: "cancelled"}, 0)
	}
	return t
}

// lose gives up the attempts of a node whose session has ended; false when the entry is full before all are given up.
func (d *decider) lose(node string) bool {
	for _, t := range d.runningOn(node) {
		if d.full() {
			return false
		}
		t = d.giveBack(t, &events.Lost{Until: d.now.Add(t.Kind.Policy.LostDelay)})
		if d.err == nil && t.Phase() == projection.Waiting && int(t.Lost) >= t.Kind.Policy.MaxLost {
			d.fail(t, events.Error{Code: events.CodeLost, Message: "the nodes that ran it were lost too often"}, 0)
		}
	}
	return true
}

// full reports that the entry takes no further command.
func (d *decider) full() bool { return d.entry.Size() >= events.SealEntryBytes }

// runningOn returns the tasks on a node in the order they started.
func (d *decider) runningOn(node string) []*projection.Task {
	return slices.SortedFunc(d.state.Running(node), byStart)
}

func byStart(a, b *projection.Task) int { return cmp.Compare(a.Started, b.Started) }

// start gives a ready task to a node; offer 0 is the owner's own.
func (d *decider) start(t *projection.Task, node string, offer uint64, lease time.Duration) *projection.Task {
	origin := d.origin
	d.origin = 0
	defer func() { d.origin = origin }()
	return d.emit(t.ID, t, "", d.entry.Started(events.Started{Node: node, Attempt: t.Attempt + 1, Offer: offer, Lease: events.Millis(lease.Milliseconds())}))
}
