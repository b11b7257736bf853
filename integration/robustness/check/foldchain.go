package check

import (
	"fmt"

	"taskledger/events"
)

// recordChain holds the sequence number and the position of the last event of a record that a shard has once.
type recordChain struct {
	Broken bool // the fold of the record stopped

	seq  uint64
	prev events.Ref
}

// Judge says what keeps an event from being the next one, "" for nothing.
func (c *recordChain) Judge(ev *events.Event) string {
	switch {
	case ev.Task != "":
		return fmt.Sprintf("names task %s", ev.Task)
	case ev.Seq != c.seq+1:
		return fmt.Sprintf("sequence %d expected", c.seq+1)
	case ev.Prev != c.prev:
		return fmt.Sprintf("names %d as the event before it, which is %d", ev.Prev, c.prev)
	}
	return ""
}

// lossProblem says what keeps the entries after the sound one, of a hash, from having been lost before another one, by
// the hash that a record of the loss has of it; "" for nothing.
func lossProblem(sound, before uint64, has, of events.Hash) string {
	switch {
	case sound >= before:
		return fmt.Sprintf("what is after entry %d cannot be lost before entry %d", sound, before)
	case has != of:
		return fmt.Sprintf("entry %d has hash %s, not %s", sound, of, has)
	}
	return ""
}

// Follow moves the chain on to an event.
func (c *recordChain) Follow(ev *events.Event) { c.seq, c.prev = ev.Seq, ev.Position.Ref }
