package events

import (
	"errors"
)

// Entry is one commit of a shard's journal.
type Entry struct {
	Shard   uint16
	Number  uint64 // 1, 2, 3 ... without gaps
	Epoch   int64  // the etcd revision of the ownership that it was written under
	Owner   string // session id of the node that wrote it
	Time    Millis // of all its events; never before the entry before
	Prev    Hash   // chain hash of the entry before; zero for the first
	Rules   uint64 // of the fold that its writer decided by
	Hash    Hash   // chain hash of this entry
	Origins []Origin
	Events  []Event
}

// ErrDamaged is wrapped when an entry's bytes contradict its hash, or are corrupt.
var ErrDamaged = errors.New("damaged entry")

// ErrVersion is wrapped beside ErrDamaged by an entry of a version that this program does not know, with an event of a
// kind that it does not know, or written by rules of the fold that it does not have; and by one that is whole, with an
// event that says more than this program knows.
var ErrVersion = errors.New("unknown version")

// EntryVersion is the first value of a stored entry: the version that this program writes, and the only one that it
// reads.
const EntryVersion = 4

// FoldRules is the number of the rules by which this program folds events: it grows when the same events lead to
// another state. What was written by later rules is refused, since a decision may rest on them.
const FoldRules = 1

// place fills in what an event knows from its entry.
func (e *Entry) place(ev *Event, index int) {
	ev.Position = Position{e.Shard, RefOf(e.Number, index)}
	ev.At = e.Time
	ev.Caller = e.caller(ev.Origin)
}
