package items

import (
	"cmp"
	"fmt"

	"github.com/tidwall/btree"

	"taskledger/events"
	"taskledger/internal/wire"
)

// emptyLasts is how long a store without items and keys is left alone, so that one that comes and goes is not
// forgotten again and again.
const emptyLasts events.Millis = 60_000

// keeps returns how long a store must be kept after its last event when it has no items: as long as its keys.
func (in *Store) keeps() events.Millis {
	if in.keys.Len() > 0 || in.gaveUp != 0 {
		return KeysLast
	}
	return 0
}

func byDue(a, b *Store) bool {
	return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.number, b.number)) < 0
}

// reindex gives a store its place among those without items, after a change of it.
func (s *Stores) reindex(in *Store) {
	due := events.Millis(0)
	if in.groups.Len() == 0 {
		due = in.at + max(in.keeps(), emptyLasts)
	}
	if due == in.due {
		return
	}
	if s.empty == nil {
		s.empty = btree.NewBTreeGOptions(byDue, quiet)
	}
	if in.due != 0 {
		s.empty.Delete(in)
	}
	if in.due = due; due != 0 {
		s.empty.Set(in)
	}
}

// remains returns how long a store without items must be kept, as time counts.
func (s *Stores) remains(in *Store, now events.Millis) events.Millis {
	keeps := in.keeps()
	if keeps == 0 {
		return 0
	}
	return max(keeps-s.clock.Since(in.at, now)+1, 0)
}

// maxKept bounds the stores that a look passes over because they must be kept all the same.
const maxKept = 64

// Forgettable returns up to so many stores that may be forgotten.
func (s *Stores) Forgettable(now events.Millis, most int) (all []events.StoreForgotten) {
	if s.empty == nil {
		return nil
	}
	kept := 0
	s.empty.Scan(func(in *Store) bool {
		if len(all) == most || in.due > now || kept == maxKept {
			return false
		}
		if s.remains(in, now) > 0 { // its requests are remembered by time as it counts, which a gap between entries makes shorter
			kept++
			return true
		}
		all = append(all, events.StoreForgotten{Store: in.Name, Last: in.Last})
		return true
	})
	return all
}

// storeRoom refuses a further store, and says how long it takes until one of the others may be forgotten.
func (s *Stores) storeRoom(now events.Millis) error {
	if len(s.byName) < MaxStores {
		return nil
	}
	r := &Refusal{Full: fmt.Sprintf("%d stores in the shard, want %d at most", len(s.byName)+1, MaxStores)}
	if s.empty != nil {
		if first, some := s.empty.Min(); some {
			r.Wait = max(s.remains(first, now), first.due-now, 1)
		}
	}
	return r
}

// Forgotten is the record of the stores of a shard that were forgotten.
func (s *Stores) Forgotten() *Forgotten { return (*Forgotten)(s) }

// Forgotten is Stores as the state of that record. Its row is the array
//
//	[sequence of the last event, last event, how many ids are left out before those of new stores]
type Forgotten Stores

// Next returns the sequence and the predecessor of the next event.
func (f *Forgotten) Next() (seq uint64, prev events.Ref) { return f.forgotten.Next() }

// Fold applies the next event. An error says why the state does not allow it; the state is then as it was.
func (f *Forgotten) Fold(ev *events.Event) error {
	s := (*Stores)(f)
	b, is := ev.Body.(*events.StoreForgotten)
	if !is {
		return fmt.Errorf("%s is no event of stores", ev.Kind())
	}
	in := s.byName[b.Store]
	switch {
	case in == nil:
		return fmt.Errorf("store %s is not there", b.Store)
	case in.Last != b.Last:
		return fmt.Errorf("store %s has made %d ids, not %d", b.Store, in.Last, b.Last)
	case in.groups.Len() > 0:
		return fmt.Errorf("store %s has items", b.Store)
	case s.remains(in, ev.At) > 0:
		return fmt.Errorf("store %s is kept for %d ms more", b.Store, s.remains(in, ev.At))
	}
	if err := s.forgotten.Follow(ev); err != nil {
		return err
	}
	for k := in.oldest(); k != nil; k = in.oldest() {
		s.drop(k)
	}
	s.empty.Delete(in)
	delete(s.byName, b.Store)
	if last := b.Last; last > s.base {
		s.gone = max(s.gone, last-s.base)
	}
	return nil
}

// Encode writes the row.
func (f *Forgotten) Encode(w *wire.Writer) {
	w.Array(3)
	f.forgotten.Encode(w)
	w.Uint(f.gone)
}

// Decode reads the row.
func (f *Forgotten) Decode(r *wire.Reader) {
	r.ArrayOf(3)
	f.forgotten.Decode(r)
	if f.gone = r.Uint(); f.gone > events.MaxItemNumber {
		r.Fail("%d ids of stores that were forgotten", f.gone)
	}
}
