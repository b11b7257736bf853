package items

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/internal/wire"
)

// Section is a kind of rows of the stores of a shard, as snapshots and digests have them.
type Section struct {
	Name string
	// List returns how many rows are to be written of the state as it is, and what writes the i-th one as it was
	// then, whatever has changed since.
	List func(*Stores) (rows int, write func(i int, w *wire.Writer))
	// Read reads a row. What it reads is complete after Restored.
	Read func(*Stores, *wire.Reader)
}

// Sections are in the order in which they are stored: each refers to those before it. Stores, groups and keys are
// numbered by the Refs of the events that made them. The rows are the arrays
//
//	stores    [number, name, last id, time of its last event, time of the latest request whose key was given up]
//	groups    [number, number of the store, name]
//	items     [number of the group, id, lineage, seq, last, at, owner, claims, data]
//	itemkeys  [number, number of the store, request id, first id, at]
var Sections = []Section{
	{"stores", listStores, readStore},
	{"groups", listGroups, readGroup},
	{"items", listItems, readItem},
	{"itemkeys", listKeys, readKey},
}

func listStores(s *Stores) (int, func(int, *wire.Writer)) {
	all := make([]Store, 0, len(s.byName))
	for _, in := range s.byName {
		all = append(all, Store{Name: in.Name, Last: in.Last, number: in.number, at: in.at, gaveUp: in.gaveUp})
	}
	slices.SortFunc(all, func(a, b Store) int { return cmp.Compare(a.number, b.number) })
	return len(all), func(i int, w *wire.Writer) {
		w.Array(5)
		w.Uint(all[i].number)
		w.Text(all[i].Name)
		w.Uint(all[i].Last)
		w.Int(int64(all[i].at))
		w.Int(int64(all[i].gaveUp))
	}
}

func readStore(s *Stores, r *wire.Reader) {
	r.ArrayOf(5)
	number, name, last, at, gaveUp := r.Uint(), r.Text(), r.Uint(), events.Millis(r.Int()), events.Millis(r.Int())
	switch err := events.ValidateStore(name); {
	case r.Err() != nil:
	case err != nil:
		r.FailBy(err)
	case s.byName[name] != nil || s.restoring.stores[number] != nil:
		r.Fail("store %s, or its number %d, is there twice", name, number)
	case last == 0 || last > events.MaxItemNumber || len(s.byName) >= MaxStores:
		r.Fail("store %s, whose last id is %d, behind %d others", name, last, len(s.byName))
	case gaveUp < 0 || at < gaveUp:
		r.Fail("store %s has given up a key of %d and had its last event at %d", name, gaveUp, at)
	default:
		in := s.newStore(name, number)
		in.Last, in.at, in.gaveUp = last, at, gaveUp
		if s.restoring.stores == nil {
			s.restoring.stores = map[uint64]*Store{}
		}
		s.restoring.stores[number] = in
	}
}

func listGroups(s *Stores) (int, func(int, *wire.Writer)) {
	all := s.groups.Copy()
	return all.Len(), func(i int, w *wire.Writer) {
		number, g, _ := all.GetAt(i)
		w.Array(3)
		w.Uint(number)
		w.Uint(g.Store.number)
		w.Text(g.Name)
	}
}

func readGroup(s *Stores, r *wire.Reader) {
	r.ArrayOf(3)
	number, in, name := r.Uint(), s.restoring.stores[r.Uint()], r.Text()
	if r.Err() != nil {
		return
	}
	if in == nil || name == "" || len(name) > events.MaxGroupBytes || s.groups.Len() >= MaxGroups {
		r.Fail("group %d of a name of %d bytes in no store, or too many", number, len(name))
		return
	}
	_, named := in.groups.Get(name)
	if _, numbered := s.groups.Get(number); named || numbered {
		r.Fail("group %d is there twice", number)
		return
	}
	s.newGroup(in, name, number)
}

func listItems(s *Stores) (int, func(int, *wire.Writer)) {
	if s.all == nil {
		return 0, nil
	}
	all := s.all.Copy()
	return all.Len(), func(n int, w *wire.Writer) {
		i, _ := all.GetAt(n)
		w.Array(9)
		w.Uint(i.Group.number)
		w.Uint(i.ID)
		w.Uint(i.Lineage)
		w.Uint(i.Seq)
		w.Uint(uint64(i.Last))
		w.Int(int64(i.At))
		w.Uint(i.Owner)
		w.Uint(i.Claims)
		w.Bytes(i.Data)
	}
}

func readItem(s *Stores, r *wire.Reader) {
	r.ArrayOf(9)
	g, _ := s.groups.Get(r.Uint())
	i := &Item{
		ID:      r.Uint(),
		Lineage: r.Uint(),
		Group:   g,
		Seq:     r.Uint(),
		Last:    events.Ref(r.Uint()),
		At:      events.Millis(r.Int()),
		Owner:   r.Uint(),
		Claims:  r.Uint(),
		Data:    r.Bytes(),
	}
	if r.Err() != nil {
		return
	}
	switch {
	case g == nil:
		r.Fail("item %d of no group", i.ID)
	case i.ID > g.Store.Last || i.Lineage == 0 || i.Lineage > i.ID || (i.Seq == 1) != (i.ID == i.Lineage):
		r.Fail("item %d of store %s, the %d-th of %d, behind %d", i.ID, g.Store.Name, i.Seq, i.Lineage, g.Store.Last)
	case i.Claims >= i.Seq:
		r.Fail("item %d of store %s was claimed %d times in %d changes", i.ID, g.Store.Name, i.Claims, i.Seq)
	case i.Owner == 0 || i.Owner > events.MaxItemNumber || i.At < 0 || i.At > events.MaxItemTime:
		r.Fail("item %d of %d until %d", i.ID, i.Owner, i.At)
	case i.Data.Codec() != events.CodecBytes || len(i.Data) > events.MaxPayloadBytes+1 || s.Len() >= MaxItems:
		r.Fail("item %d of %d bytes in codec %d, behind %d others", i.ID, len(i.Data), i.Data.Codec(), s.Len())
	case s.Item(g.Store.Name, i.ID) != nil:
		r.Fail("item %d of store %s is there twice", i.ID, g.Store.Name)
	default:
		s.put(i, -1)
		s.restoring.last = max(s.restoring.last, i.Last)
	}
}

func listKeys(s *Stores) (int, func(int, *wire.Writer)) {
	all := s.keys.inOrder.Copy()
	return all.Len(), func(i int, w *wire.Writer) {
		_, k, _ := all.GetAt(i)
		w.Array(5)
		w.Uint(uint64(k.by))
		w.Uint(k.store.number)
		w.Text(k.request)
		w.Uint(k.first)
		w.Int(int64(k.at))
	}
}

func readKey(s *Stores, r *wire.Reader) {
	r.ArrayOf(5)
	k := &key{
		by:      events.Ref(r.Uint()),
		store:   s.restoring.stores[r.Uint()],
		request: r.Text(),
		first:   r.Uint(),
		at:      events.Millis(r.Int()),
	}
	if r.Err() != nil {
		return
	}
	newest, _, some := s.keys.inOrder.Max()
	_, is := clientOf(k.request)
	switch {
	case k.store == nil || !is:
		r.Fail("key %q of no store, or no client", k.request)
	case some && k.by <= newest || s.keys.inOrder.Len() >= mostKeys:
		r.Fail("key %q of event %d behind that of %d", k.request, k.by, newest)
	case s.keys.byName[k.key()] != nil || len(s.keys.clients[k.client()]) >= KeysPerClient:
		r.Fail("key %q is there twice, or one of too many", k.request)
	default:
		s.putKey(k)
		s.restoring.last = max(s.restoring.last, k.by)
	}
}

// restoring holds what only the reading of rows needs.
type restoring struct {
	stores map[uint64]*Store
	last   events.Ref
}

// Restored completes the state after every row was read: that of an entry and its time.
func (s *Stores) Restored(entry uint64, now events.Millis) error {
	if s.restoring.last.Entry() > entry {
		return fmt.Errorf("an item of event %d after entry %d", s.restoring.last, entry)
	}
	for number := range s.restoring.stores {
		if events.Ref(number).Entry() > entry {
			return fmt.Errorf("a store of event %d after entry %d", number, entry)
		}
	}
	empty, newest := false, events.Ref(0)
	s.groups.Scan(func(number uint64, g *Group) bool {
		newest, empty = events.Ref(number), g.byID.Len() == 0
		return !empty
	})
	switch {
	case empty:
		return errors.New("a group without items")
	case newest.Entry() > entry:
		return fmt.Errorf("a group of event %d after entry %d", newest, entry)
	case s.held != nil && s.held.Len() != s.all.Len():
		return errors.New("two items of the same event")
	}
	for _, in := range s.byName {
		s.reindex(in)
	}
	s.restoring = restoring{}
	s.MakeDue(now, nil)
	return nil
}
