package command

import (
	"errors"
	"fmt"

	"taskledger/events"
	"taskledger/store"
)

// decideReadable decides a command, or refuses it when its first event is of a kind that a node which is present cannot read.
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

// unread reports that no event of a kind may be recorded: a node that is present cannot read it. It refuses the command that is being
// decided, and whatever else that wants to record.
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
