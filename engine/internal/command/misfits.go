package command

import (
	"errors"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// Misfits is what the owners of a shard in this process have learned of entries that were too large for the store. The zero value is of
// none.
type Misfits struct {
	most    int // bytes of an entry with more than one command; 0: as many as an entry may have
	batches map[projection.SenderLane]misfit

	// Of the batch that was recorded last in the entry in the making.
	decided int // commands
	last    int // of them, by index
}

// misfit is a batch with commands that could not be stored in an entry of their own.
type misfit struct {
	number  uint64
	refused map[int]int // by index: bytes of that entry
}

// ErrMisfit is wrapped by an entry that was too large for the store. What it decided, of which nothing is recorded, has to be decided anew.
var ErrMisfit = errors.New("entry does not fit into the store")

// leastMost is the size of an entry that every store takes.
const leastMost = 4 << 10

// Learn takes note of why an entry was not stored, if that is its size: one command alone is refused from now on; where there were more,
// or what the owner decides by itself, later entries hold less. The error wraps ErrMisfit then, unless there is nothing left to try.
func (m *Misfits) Learn(b *events.Builder, why error) error {
	e := &b.Entry
	others := func(o events.Origin) bool { return o.Batch == 0 }
	alone := m.decided == 1 && len(e.Origins) > 0 && !slices.ContainsFunc(e.Origins[1:], others) &&
		!slices.ContainsFunc(e.Events, func(ev events.Event) bool { return ev.Origin == 0 })
	switch {
	case !errors.Is(why, store.ErrTooLarge):
		return why
	case alone:
		m.refuse(&e.Origins[0], m.last, b.Size())
	case b.Size() <= leastMost:
		return why
	default:
		m.most = min(m.limit(), b.Size()) / 4 * 3
	}
	return fmt.Errorf("%w: %w", ErrMisfit, why)
}

func (m *Misfits) refuse(o *events.Origin, command, bytes int) {
	lane := projection.SenderLane{Sender: o.Sender, Lane: o.Lane}
	if m.batches == nil {
		m.batches = map[projection.SenderLane]misfit{}
	}
	if m.batches[lane].number != o.Number {
		m.batches[lane] = misfit{o.Number, map[int]int{}}
	}
	m.batches[lane].refused[command] = bytes
}

// limit is how large an entry with more than one command may get.
func (m *Misfits) limit() int {
	if m == nil || m.most == 0 {
		return events.MaxEntryBytes
	}
	return m.most
}

// of returns which commands of a batch are refused; none of most.
func (m *Misfits) of(b *Batch) (refused map[int]int) {
	if m == nil {
		return nil
	}
	if is := m.batches[projection.SenderLane{Sender: b.Sender, Lane: b.Lane}]; is.number == b.Number {
		return is.refused
	}
	return nil
}

// recorded takes note of what an entry holds of a batch.
func (m *Misfits) recorded(decided, last int) {
	if m != nil {
		m.decided, m.last = decided, last
	}
}
