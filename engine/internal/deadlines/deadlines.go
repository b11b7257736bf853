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
	state   *projection.Shard
	overdue bool          // a deadline has passed, and nothing was decided since
	retry   events.Millis // nothing is ended before; 0 = it may be
}

// AtOwner returns the extension of an owner.
func AtOwner(state *projection.Shard) shard.Extension {
	o := &atOwner{state: state}
	return shard.Extension{
		NextDue: o.nextDue,
		MakeDue: o.makeDue,
		Decide:  o.decide,
		Tell:    tell,
	}
}

// nextDue returns no time while it is the next turn that decides: that may have to wait.
func (o *atOwner) nextDue() events.Millis {
	_, due := o.state.NextDeadline()
	if due == 0 || o.overdue {
		return 0
	}
	return max(due, o.retry)
}

func (o *atOwner) makeDue(now events.Millis) (moved bool) {
	if due := o.nextDue(); due == 0 || due > now {
		return false
	}
	o.overdue = true
	return true
}

// decide ends the runs that are overdue, within the budget.
func (o *atOwner) decide(d *command.Decider, b command.Budget) {
	if !o.overdue {
		return
	}
	o.overdue = false
	if !d.MayRecord(events.KindFailed) {
		o.retry = d.Now + tryAgain
		return
	}
	for ended := 0; ; ended++ {
		t, due := o.state.NextDeadline()
		switch {
		case due == 0 || due > d.Now || d.Err != nil:
			return
		case ended == b.Items || d.EntryFull() || ended > 0 && b.Over():
			o.retry = d.Now + 1
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
