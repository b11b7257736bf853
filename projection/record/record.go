// Package record holds the common part of the records that are no tasks: the one chain of events that each has in a
// shard.
package record

import (
	"fmt"

	"taskledger/events"
	"taskledger/internal/wire"
)

// Chain tells how far the events of a record have come in a shard. A record without events has the zero value.
type Chain struct {
	Seq  uint64     // of the last event: 1, 2, 3 ... without gaps
	Last events.Ref // the last event; 0 = none yet
}

// Follow moves the chain on to an event. An error says why the event is not the next one; the chain is then as it was.
func (c *Chain) Follow(ev *events.Event) error {
	switch {
	case ev.Seq != c.Seq+1:
		return fmt.Errorf("sequence %d follows %d", ev.Seq, c.Seq)
	case ev.Prev != c.Last:
		return fmt.Errorf("predecessor %d, the record's last event is %d", ev.Prev, c.Last)
	case ev.Position.Ref <= c.Last:
		return fmt.Errorf("event %d stands before its predecessor %d", ev.Position.Ref, c.Last)
	}
	c.Seq, c.Last = ev.Seq, ev.Position.Ref
	return nil
}

// Next returns the sequence and the predecessor of the next event.
func (c *Chain) Next() (seq uint64, prev events.Ref) { return c.Seq + 1, c.Last }

// Encode writes the sequence and the last event, two values.
func (c *Chain) Encode(w *wire.Writer) {
	w.Uint(c.Seq)
	w.Uint(uint64(c.Last))
}

// Decode reads what Encode wrote.
func (c *Chain) Decode(r *wire.Reader) {
	c.Seq, c.Last = r.Uint(), events.Ref(r.Uint())
	if (c.Seq == 0) != (c.Last == 0) {
		r.Fail("record of %d events, the last one %d", c.Seq, c.Last)
	}
}
