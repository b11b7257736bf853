package command

import (
	"taskledger/events"
)

// Emit is a command that submits a task, or finds it, and records events of it.
type Emit struct {
	Submit
	Bodies []events.Body
}

func (c *Emit) Decide(d *Decider) Answer {
	if t := d.State.Task(c.Task); t == nil {
		c.Submit.Decide(d)
	}
	for _, body := range c.Bodies {
		d.emit(c.Task, d.State.Task(c.Task), "", body)
	}
	return Answer{}
}

// IsDecided reports whether a command is decided within an entry.
func IsDecided(c Command) bool {
	_, is := c.(decided)
	return is
}
