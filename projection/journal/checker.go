package journal

import (
	"fmt"

	"taskledger/events"
)

// keptHashes is how many entries back what a journal says of its losses is compared with the entries that were read.
const keptHashes = 64 << 10

// Checker compares what a journal says of its losses with the entries that were read.
type Checker struct {
	from   uint64                 // the first of them
	hashes map[uint64]events.Hash // chain hashes of the latest, by number, and of the entry before the first
}

// NewChecker begins with the entry that is read first, and the chain hash of the one before it.
func NewChecker(from uint64, prev events.Hash) *Checker {
	return &Checker{from, map[uint64]events.Hash{from - 1: prev}}
}

// Read takes in the next entry, and returns the losses of which it tells and what contradicts them, "" for nothing.
func (c *Checker) Read(e *events.Entry) (all []Loss, problem string) {
	for i := range e.Events {
		l, is := LossOf(&e.Events[i])
		if !is {
			continue
		}
		if all = append(all, l); problem == "" {
			problem = c.judge(&l, e.Number)
		}
	}
	c.hashes[e.Number] = e.Hash
	delete(c.hashes, e.Number-keptHashes)
	return all, problem
}

// judge says what contradicts a loss that an entry tells of. The entry may stand in the place of what was given up.
func (c *Checker) judge(l *Loss, in uint64) string {
	sound := l.Entry
	if l.Kind == events.KindAcceptedLoss {
		sound--
		if l.Entry >= c.from && l.Entry < in {
			return fmt.Sprintf("entry %d, which was given up, is sound", l.Entry)
		}
	}
	if sound >= in {
		return fmt.Sprintf("what follows entry %d cannot be lost before entry %d", sound, in)
	}
	if hash, known := c.hashes[sound]; known && hash != l.Sound {
		return fmt.Sprintf("the last entry before what was lost, %d, has hash %s, not %s", sound, hash, l.Sound)
	}
	return ""
}
