// Package deadlines ends runs whose deadline has passed. It extends the owner of a shard.
package deadlines

import (
	"fmt"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/projection"
)

// tryAgain puts off the end of a run while the store is almost full.
const tryAgain events.Millis = 1000

// atOwner is the extension of the owner of a shard.
type atOwner struct {
	state *projection.Shard
	retry events.Millis // nothing is ended before; 0 = it may be
}

// AtOwner is the extension of owners.
func AtOwner(state *projection.Shard) shard.Extension {
	o := &atOwner{state: state}
	return shard.Extension{
		NextDue: o.nextDue,
		MakeDue: func(now events.Millis) bool { return o.overdue(now) != nil },
		Decide:  o.decide,
		Tell:    tell,
	}
}

func (o *atOwner) nextDue() events.Millis {
	_, due := o.state.NextDeadline()
	if due == 0 {
		return 0
	}
	return max(due, o.retry)
}

// overdue returns a task whose deadline has passed; nil = none, or it is to be tried again later.
func (o *atOwner) overdue(now events.Millis) *projection.Task {
	t, due := o.state.NextDeadline()
	if t == nil || max(due, o.retry) > now {
		return nil
	}
	return t
}

// decide ends the runs that are overdue, within the budget.
func (o *atOwner) decide(d *command.Decider, b command.Budget) {
	for ended := 0; ended < b.Items && !d.EntryFull() && d.Err == nil && (ended == 0 || !b.Over()); ended++ {
		t := o.overdue(d.Now)
		if t == nil {
			return
		}
		if !d.MayRecord(events.KindFailed) {
			o.retry = d.Now + tryAgain
			return
		}
		end(d, t)
	}
}

// end ends the run of a task. A further run that has not begun leaves the outcome of the one before as it is.
func end(d *command.Decider, t *projection.Task) {
	problem := "the deadline, " + t.Deadline().Text() + ", has passed"
	if t.RunEnded {
		d.Cancel(t, problem)
		return
	}
	d.FailTask(t, events.Error{Code: events.CodeDeadline, Message: problem})
}

// tell says when the run of a task fails.
func tell(t *projection.Task, now events.Millis) string {
	if t.Deadline() == 0 {
		return ""
	}
	return fmt.Sprintf("its run fails unless it has ended by %s", t.Deadline().Text())
}
