package command

import (
	"errors"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// Oversized remembers which commands the store refused in an entry of their own because it was too large, and how
// large entries of several commands may get. Successive owners of a shard in this process share it. The zero value
// remembers none.
type Oversized struct {
	most    int // bytes of an entry with more than one command; 0: as many as an entry may have
	batches map[projection.SenderLane]oversizedBatch

	// Of the batch that was recorded last in the entry in the making.
	decided int // commands
	last    int // of them, by index
}

// oversizedBatch names the commands of a batch that could not be stored in an entry of their own.
type oversizedBatch struct {
	number  uint64
	refused map[int]int // by index: bytes of that entry
}

// ErrDecideAnew reports an entry that was too large for the store, or that a node cannot read. Nothing of it is
// recorded: its commands have to be decided anew.
var ErrDecideAnew = errors.New("the entry has to be decided anew")

// leastMost is the size of an entry that every store takes.
const leastMost = 4 << 10

// Learn notes an entry that was too large for the store: its command is refused from now on if it was alone, else
// later entries hold less. It returns an error that wraps ErrDecideAnew then, unless there is nothing left to try,
// and any other error as it is.
func (m *Oversized) Learn(b *events.Builder, why error) error {
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
	return fmt.Errorf("%w: %w", ErrDecideAnew, why)
}

func (m *Oversized) refuse(o *events.Origin, command, bytes int) {
	lane := projection.SenderLane{Sender: o.Sender, Lane: o.Lane}
	if m.batches == nil {
		m.batches = map[projection.SenderLane]oversizedBatch{}
	}
	if m.batches[lane].number != o.Number {
		m.batches[lane] = oversizedBatch{o.Number, map[int]int{}}
	}
	m.batches[lane].refused[command] = bytes
}

// limit returns how large an entry with more than one command may get.
func (m *Oversized) limit() int {
	if m == nil || m.most == 0 {
		return events.MaxEntryBytes
	}
	return m.most
}

// of returns which commands of a batch are refused; none of most.
func (m *Oversized) of(b *Batch) (refused map[int]int) {
	if m == nil {
		return nil
	}
	if is := m.batches[projection.SenderLane{Sender: b.Sender, Lane: b.Lane}]; is.number == b.Number {
		return is.refused
	}
	return nil
}

// recorded notes how many commands of a batch the entry decided, and the index of the last one.
func (m *Oversized) recorded(decided, last int) {
	if m != nil {
		m.decided, m.last = decided, last
	}
}
