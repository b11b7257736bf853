// Package journal keeps the record of the losses of a shard's journal: entries that operators gave up, and tails that
// a store lost. Each shard has its own. The package is pure.
package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/extension"
	"taskledger/projection/record"
)

// MaxLosses bounds the losses that are kept; the oldest go first. The events of all of them stay in the journal.
const MaxLosses = 64

// Loss tells what was lost.
type Loss struct {
	Kind   events.Kind   `json:"kind"`             // AcceptedLoss: an operator gave up Entry; Recovered: a store lost those after Entry
	Entry  uint64        `json:"entry"`            // its number
	Sound  events.Hash   `json:"sound"`            // chain hash of the last entry before what was lost
	Reason string        `json:"reason,omitempty"` // as it was given
	By     string        `json:"by,omitempty"`     // the principal who recorded it; "" = the owner itself
	At     events.Millis `json:"at"`
}

// String says what was lost, by whom and why.
func (l Loss) String() string {
	text := fmt.Sprintf("entry %d was given up", l.Entry)
	if l.Kind == events.KindRecovered {
		text = fmt.Sprintf("the entries after %d were lost by the store", l.Entry)
		if l.filled() {
			text = "entries may have been lost by the store, whose numbers are not used again"
		}
	}
	if l.By != "" {
		text += " by " + l.By
	}
	text += " on " + l.At.Time().Format(time.RFC3339)
	if l.Reason != "" {
		text += ": " + l.Reason
	}
	return text
}

// filled reports whether a store has filled the place of what it may have lost, up to the entry that the loss names.
// The reason then ends with the numbers.
func (l *Loss) filled() bool {
	var first, last uint64
	at := strings.LastIndex(l.Reason, ": entries ")
	if at < 0 {
		return false
	}
	n, err := fmt.Sscanf(l.Reason[at:], ": entries %d to %d", &first, &last)
	return n == 2 && err == nil && first <= last && last == l.Entry
}

// LossOf returns the loss that an event tells of; false for none.
func LossOf(ev *events.Event) (Loss, bool) {
	lost := Loss{Kind: ev.Kind(), By: ev.Caller.Principal, At: ev.At}
	switch b := ev.Body.(type) {
	case *events.AcceptedLoss:
		lost.Entry, lost.Sound, lost.Reason = b.Entry, b.Sound, b.Reason
	case *events.Recovered:
		lost.Entry, lost.Sound, lost.Reason = b.Entry, b.Sound, b.Reason
	default:
		return Loss{}, false
	}
	return lost, true
}

// check says what keeps a loss from being recorded in an entry.
func (l *Loss) check(in uint64) error {
	if l.Kind == events.KindAcceptedLoss && (l.Entry == 0 || l.Entry > in) ||
		l.Kind == events.KindRecovered && l.Entry >= in {
		return fmt.Errorf("entry %d cannot be lost before entry %d", l.Entry, in)
	}
	return events.CheckReason(l.Reason)
}

// State tells what was lost: it folds its events. A copy keeps its value. The zero value is that without events.
type State struct {
	record.Chain
	losses []Loss // oldest first; copies share it, so it is never changed
}

// Extend returns what a journal has lost before its first event.
func Extend(extension.Shard) extension.Extension {
	s := new(State)
	x := extension.OfSingle(events.OfJournal, s)
	x.Losses = s.times
	x.CutAfter = s.cutAfter
	return x
}

// Of returns what the journal of a shard has lost. It is the shard's own: read only, until its next event; a copy
// keeps its value.
func Of(in extension.Holder) *State { return in.State(events.OfJournal).(*State) }

// times returns how often the journal has lost something, and when last.
func (s *State) times() (n uint64, last events.Millis) {
	if len(s.losses) > 0 {
		last = s.losses[len(s.losses)-1].At
	}
	return s.Seq, last
}

// cutAfter returns the entries after which the store lost the rest of the journal, by what is kept of the losses.
func (s *State) cutAfter() (entries []uint64) {
	for _, l := range s.losses {
		if l.Kind == events.KindRecovered {
			entries = append(entries, l.Entry)
		}
	}
	return entries
}

// Losses returns the latest losses, the oldest of them first. The slice must not be changed.
func (s *State) Losses() []Loss { return s.losses }

// Fold applies the next event. An error says why the state does not allow it; the state is then as it was.
func (s *State) Fold(ev *events.Event) error {
	lost, is := LossOf(ev)
	if !is {
		return fmt.Errorf("%s is no event of the journal", ev.Kind())
	}
	if err := lost.check(ev.Position.Ref.Entry()); err != nil {
		return err
	}
	if err := s.Follow(ev); err != nil {
		return err
	}
	s.losses = slices.Concat(s.losses[max(0, len(s.losses)-MaxLosses+1):], []Loss{lost})
	return nil
}

// Encode writes the array [seq, last, [loss ...]], the oldest first, a loss as [kind, entry, sound, reason, by, at].
func (s *State) Encode(w *wire.Writer) {
	w.Array(3)
	s.Chain.Encode(w)
	w.Array(len(s.losses))
	for i := range s.losses {
		l := &s.losses[i]
		w.Array(6)
		w.Uint(uint64(l.Kind))
		w.Uint(l.Entry)
		w.Bytes(l.Sound[:])
		w.Text(l.Reason)
		w.Text(l.By)
		w.Int(int64(l.At))
	}
}

// Decode reads what Encode wrote. It fails the reader when that is the fold of no events.
func (s *State) Decode(r *wire.Reader) {
	*s = State{}
	r.ArrayOf(3)
	s.Chain.Decode(r)
	n := r.Array()
	if uint64(n) != min(s.Seq, MaxLosses) {
		r.Fail("%d losses after %d events", n, s.Seq)
	}
	for i := 0; i < n && r.Err() == nil; i++ {
		r.ArrayOf(6)
		kind := r.Uint()
		l := Loss{Kind: events.Kind(kind), Entry: r.Uint()}
		hash := r.View()
		l.Reason, l.By, l.At = r.Text(), r.Text(), events.Millis(r.Int())
		if copy(l.Sound[:], hash) != len(hash) || len(hash) != len(l.Sound) {
			r.Fail("hash of %d bytes", len(hash))
		}
		if kind != uint64(events.KindAcceptedLoss) && kind != uint64(events.KindRecovered) {
			r.Fail("loss of kind %d", kind)
		}
		if err := l.check(s.Last.Entry()); err != nil {
			r.Fail("%v", err)
		}
		s.losses = append(s.losses, l)
	}
}
