package command

import (
	"errors"
	"fmt"

	"taskledger/events"
	"taskledger/store"
)

// decideReadable decides a command, or refuses it when its first event is of a kind that a node which is present cannot read.
func (d *Decider) decideReadable(c decided) Answer {
	var problem string
	d.problem = &problem
	defer func() { d.problem = nil }()
	before := len(d.Entry.Entry.Events)
	a := c.decide(d)
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
	if d.problem != nil && *d.problem != "" {
		return true
	}
	if kind <= d.Highest {
		return false
	}
	if d.Members != nil {
		if why := d.Members.Forbids(store.Reads{Kind: kind}); why != "" && d.problem != nil {
			*d.problem = why
			return true
		} else if why != "" {
			d.Err = errors.New(why)
			return true
		}
	}
	d.Highest = kind
	return false
}
