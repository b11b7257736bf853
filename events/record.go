package events

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"taskledger/internal/wire"
)

// Record names what an event belongs to: a task, or one of the few records of a shard that are no tasks. The events of
// such a record have no Task, but for those of items and schedules; their Seq and Prev count and link them as those of
// a task do, without a second life.
type Record uint8

// The records.
const (
	OfTask      Record = iota
	OfJournal          // losses that the journal of the shard records about itself
	OfSettings         // the settings of the cluster, in the shard of the id Settings
	OfItem             // an item of a store, of which a shard has many
	OfForgotten        // the stores of the shard that were forgotten
	OfSchedule         // a schedule, of which a shard has many
	recordEnd
)

var recordNames = [recordEnd]string{
	OfTask:      "task",
	OfJournal:   "journal",
	OfSettings:  "settings",
	OfItem:      "item",
	OfForgotten: "forgotten",
	OfSchedule:  "schedule",
}

// Records returns every record.
func Records() []Record {
	all := make([]Record, recordEnd)
	for i := range all {
		all[i] = Record(i)
	}
	return all
}

// String returns the record's name in lower case.
func (r Record) String() string {
	if r >= recordEnd {
		return "Record(" + strconv.Itoa(int(r)) + ")"
	}
	return recordNames[r]
}

// AcceptedLoss says that an operator gave up an entry of the journal that cannot be read. It stands in the place of
// that entry, or after entries that were read: whatever was behind the entry is given up with it, since nothing
// there continues the chain.
type AcceptedLoss struct {
	Entry  uint64 // its number
	Sound  Hash   // chain hash of the entry before it
	Reason string
}

// Recovered says that the store came back without the end of the journal: entries that were committed after the one
// it names are gone.
type Recovered struct {
	Entry  uint64 // the last one that was left
	Sound  Hash   // its chain hash
	Reason string
}

// Paused keeps the tasks of a behavior from starting.
type Paused struct{ Behavior, Reason string }

// Unpaused ends Paused.
type Unpaused struct{ Behavior string }

func (*AcceptedLoss) Kind() Kind { return KindAcceptedLoss }
func (*Recovered) Kind() Kind    { return KindRecovered }
func (*Paused) Kind() Kind       { return KindPaused }
func (*Unpaused) Kind() Kind     { return KindUnpaused }

func (*AcceptedLoss) payload() Payload { return nil }
func (*Recovered) payload() Payload    { return nil }
func (*Paused) payload() Payload       { return nil }
func (*Unpaused) payload() Payload     { return nil }

func (b *AcceptedLoss) encode(w *wire.Writer) { encodeLoss(w, b.Entry, b.Sound, b.Reason) }
func (b *Recovered) encode(w *wire.Writer)    { encodeLoss(w, b.Entry, b.Sound, b.Reason) }
func (b *Paused) encode(w *wire.Writer)       { w.Array(2); w.Text(b.Behavior); w.Text(b.Reason) }
func (b *Unpaused) encode(w *wire.Writer)     { w.Array(1); w.Text(b.Behavior) }

func (b *AcceptedLoss) decode(r *wire.Reader, _ Payload) {
	b.Entry, b.Sound, b.Reason = decodeLoss(r)
}
func (b *Recovered) decode(r *wire.Reader, _ Payload) { b.Entry, b.Sound, b.Reason = decodeLoss(r) }
func (b *Paused) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(2)
	b.Behavior, b.Reason = r.Text(), r.Text()
}
func (b *Unpaused) decode(r *wire.Reader, _ Payload) { r.ArrayOf(1); b.Behavior = r.Text() }

// CheckReason refuses a reason that is too long or no UTF-8.
func CheckReason(reason string) error {
	if n := len(reason); n > MaxNameBytes {
		return fmt.Errorf("reason: %d bytes exceed the limit of %d", n, MaxNameBytes)
	}
	if !utf8.ValidString(reason) {
		return fmt.Errorf("reason: want UTF-8, got %q", reason)
	}
	return nil
}

func checkLoss(entry uint64, reason string) error {
	if entry > maxEntryNumber {
		return fmt.Errorf("loss at entry %d, want %d at most", entry, uint64(maxEntryNumber))
	}
	return CheckReason(reason)
}

func encodeLoss(w *wire.Writer, entry uint64, sound Hash, reason string) {
	w.Array(3)
	w.Uint(entry)
	w.Bytes(sound[:])
	w.Text(reason)
}

func decodeLoss(r *wire.Reader) (entry uint64, sound Hash, reason string) {
	r.ArrayOf(3)
	entry = r.Uint()
	if hash := r.View(); len(hash) == len(sound) {
		copy(sound[:], hash)
	} else {
		r.Fail("hash of %d bytes", len(hash))
	}
	return entry, sound, r.Text()
}
