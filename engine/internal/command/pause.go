package command

import (
	"cmp"

	"taskledger/events"
	"taskledger/projection/settings"
)

// Pause pauses the tasks of a behavior, which then do not start, or lets them start again.
type Pause struct {
	Behavior string
	Paused   bool
	Reason   string // of a pause
}

func (*Pause) Op() uint64 { return opPause }

func (*Pause) Shard(count int) int { return events.Settings.Shard(count) }

func (c *Pause) Size() int { return commandBytes + len(c.Behavior) + len(c.Reason) }

func (c *Pause) Limits() error {
	return cmp.Or(limitBehavior(c.Behavior), limitNote("reason", c.Reason))
}

func (c *Pause) Decide(d *Decider) Answer {
	if d.StoreFull { // an entry would wait for room, and delay all behind it
		return d.noSpace()
	}
	body, err := c.event(d)
	if err != nil {
		return Refused(AnswerInvalid, "%v", err)
	}
	if body != nil {
		d.EmitRecord(body)
	}
	return Answer{}
}

// event returns what changes, nil for nothing.
func (c *Pause) event(d *Decider) (events.Body, error) {
	if c.Paused {
		return settings.Of(d.State).DecidePause(c.Behavior, c.Reason)
	}
	return settings.Of(d.State).DecideUnpause(c.Behavior)
}
