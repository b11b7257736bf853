// Package journal declares Journaler, the port through which a store of one process keeps what must outlive it: the
// entries of the shards, in order, and a few snapshots that replace them. Package filestore makes a store.Store of any
// Journaler. Package filejournal keeps one in the files of a directory, package memjournal one in memory, and package
// journaltest holds any other to the contract.
//
// # What is kept
//
// A journal has entries 1, 2, 3 ... of each shard, without gaps. Entries leave it from the front alone, when a snapshot
// says that nobody needs them any more. A snapshot is a value under a Key, which the next one under the same Key
// replaces as a whole. Two of the keys of a shard hold the snapshots of its fold; under the shard Notes, which has no
// entries, the store keeps what it has to remember itself.
//
// # Errors
//
// A write that wraps ErrFull has left nothing behind, and the next one may succeed. After any other error of a write
// nobody knows what is kept: the store writes nothing more, and whoever opens the journal again finds the entry or
// does not. What is kept and is corrupt wraps events.ErrDamaged.
//
// No method takes a context: a write that is given up half-way would leave an outcome that nobody knows. A Journaler
// that asks another process bounds its calls itself, and returns an error.
package journal

import (
	"errors"
	"iter"
)

// Notes is the shard under which a store keeps a snapshot of its own; it has no entries.
const Notes = -1

// Slots is the number of keys that each shard has.
const Slots = 3

// ErrFull reports that there was no room for a write, of which nothing is left.
var ErrFull = errors.New("no room is left for the journal")

// Entry is an entry of the journal of a shard. Its data are never changed.
type Entry struct {
	Shard    int
	Number   uint64
	Revision int64 // of its write; it grows from each write of the store to the next
	Data     []byte
}

// Key names a snapshot: a shard or Notes, and one of its slots, from 0 on.
type Key struct{ Shard, Slot int }

// Snapshot holds a value under a Key. A Key that was never written has the zero value.
type Snapshot struct {
	// First is the first entry of the shard that is still needed: those before it may go. It never falls from one
	// snapshot of a shard to the next.
	First uint64
	Parts [][]byte
}

// Journaler keeps the entries and snapshots of one store. Its methods may be called concurrently, but for one shard no
// two of Append, and none after Close.
type Journaler interface {
	// Append adds the entry after the last one of its shard, and returns when it is kept as safely as the Journaler
	// promises. It does not keep e.Data once it has returned.
	Append(e Entry) error
	// Read yields the entries of a shard from number from up to the last one at the time of the call, in order. It
	// yields nothing where there is no such entry, and ends with the first error. Where the first of them have gone it
	// may begin with a later one. What is yielded belongs to the receiver.
	Read(shard int, from uint64) iter.Seq2[Entry, error]
	// WriteSnapshot replaces what the Key holds. When it returns, the snapshot and all entries that were appended
	// before are durable, however little Append promises.
	WriteSnapshot(k Key, s Snapshot) error
	// ReadSnapshot returns what the Key holds.
	ReadSnapshot(k Key) (Snapshot, error)
	// Close makes durable what was written and ends the use of the journal. Another call does nothing.
	Close() error
}

// Head tells of an entry without its data.
type Head struct {
	Number   uint64
	Revision int64
	Bytes    int // of the data
}

// Surveyed is a Journaler that has read its entries before a store is made of it, which then need not read them again.
type Surveyed interface {
	// Heads yields of each entry what Read would, without the data. Where known is false it does not know them any more,
	// as after the first write, and Read tells.
	Heads(shard int, from uint64) (heads iter.Seq[Head], known bool)
}

// Lossy is a Journaler that may answer an Append before the entry is durable. A store of one that does so reserves the
// numbers of entries in blocks, so that none that was answered is used again after a loss.
type Lossy interface {
	// MayLose reports whether it does so. It never changes.
	MayLose() bool
	// Lost reports whether entries that were answered may be missing at the end, and why; "" = none are.
	Lost() (reason string)
	// Told ends the report, once the store has noted the loss durably.
	Told() error
	// Failed returns why nothing is written any more, as after entries that were answered could not be made durable;
	// nil = that is not so.
	Failed() error
}
