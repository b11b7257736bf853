package items

import (
	"errors"
	"fmt"
	"math"

	"taskledger/events"
)

// recoveredSkip is how far the ids of every store go on where the end of a journal was lost: more than that end can have used.
const recoveredSkip = 1 << 32

// Fold applies the next event. An error says why the state does not allow it; the state is then as it was.
func (s *Stores) Fold(ev *events.Event) error {
	store, lineage, err := events.ItemOf(ev.Task)
	if err != nil {
		return err
	}
	// The ids that a request got begin behind those that were there before its first event, which names it.
	first := uint64(1)
	if in := s.byName[store]; in != nil {
		first = in.Last + 1
	}
	switch b := ev.Body.(type) {
	case *events.ItemAdded:
		err = s.add(store, lineage, ev, b)
	case *events.ItemReplaced:
		err = s.replace(store, lineage, ev, b)
	case *events.ItemRemoved:
		err = s.remove(store, lineage, ev, b)
	default:
		err = fmt.Errorf("%s is no event of an item", ev.Kind())
	}
	if err == nil && ev.RequestID != "" {
		s.keys.add(&key{store: s.byName[store], request: ev.RequestID, first: first, at: ev.At, by: ev.Position.Ref})
	}
	return err
}

// Recovered makes sure that no id is used twice where the end of the journal was lost.
func (s *Stores) Recovered() {
	for _, in := range s.byName {
		in.Last = min(in.Last+recoveredSkip, events.MaxItemNumber)
	}
}

func (s *Stores) add(store string, lineage uint64, ev *events.Event, b *events.ItemAdded) error {
	in := s.byName[store]
	if err := nextID(in, b.ID); err != nil {
		return err
	}
	g := s.group(store, b.Group)
	switch {
	case lineage != b.ID || ev.Seq != 1 || ev.Prev != 0:
		return fmt.Errorf("an item that begins as %d is added as %d, sequence %d after %d", lineage, b.ID, ev.Seq, ev.Prev)
	case s.Len() >= MaxItems:
		return fmt.Errorf("%d items, want %d at most", s.Len()+1, MaxItems)
	case in == nil && len(s.byName) >= MaxStores:
		return fmt.Errorf("%d stores, want %d at most", len(s.byName)+1, MaxStores)
	case g == nil && s.groups.Len() >= MaxGroups:
		return fmt.Errorf("%d groups, want %d at most", s.groups.Len()+1, MaxGroups)
	case b.Data == nil:
		return errors.New("an item without data")
	}
	in = s.storeOf(store, ev.Position.Ref)
	in.Last = b.ID
	s.put(&Item{ID: b.ID, Lineage: lineage, Owner: b.Owner, At: b.At, Last: ev.Position.Ref, Data: b.Data,
		Group: s.groupOf(in, b.Group, ev.Position.Ref), Seq: 1}, ev.At)
	return nil
}

func (s *Stores) replace(store string, lineage uint64, ev *events.Event, b *events.ItemReplaced) error {
	was, err := s.continued(store, b.From, lineage, ev, b.Owner)
	if err != nil {
		return err
	}
	if err := nextID(was.Group.Store, b.To); err != nil {
		return err
	}
	is := *was
	is.ID, is.Owner, is.At, is.Last, is.Seq = b.To, b.Owner, b.At, ev.Position.Ref, is.Seq+1
	if b.Data != nil {
		is.Data = b.Data
	}
	s.take(was)
	is.Group.Store.Last = b.To
	s.put(&is, ev.At)
	return nil
}

func (s *Stores) remove(store string, lineage uint64, ev *events.Event, b *events.ItemRemoved) error {
	was, err := s.continued(store, b.ID, lineage, ev, b.Owner)
	if err != nil {
		return err
	}
	s.take(was)
	s.prune(was.Group)
	return nil
}

// continued returns the item that an event changes, which must be its next one, of somebody who may change the item.
func (s *Stores) continued(store string, id, lineage uint64, ev *events.Event, by uint64) (*Item, error) {
	was := s.Item(store, id)
	switch {
	case was == nil:
		return nil, fmt.Errorf("item %d is not there", id)
	case was.Lineage != lineage:
		return nil, fmt.Errorf("item %d began as %d, not as %d", id, was.Lineage, lineage)
	case ev.Seq != uint64(was.Seq)+1 || was.Seq == math.MaxUint32:
		return nil, fmt.Errorf("sequence %d follows %d", ev.Seq, was.Seq)
	case ev.Prev != was.Last:
		return nil, fmt.Errorf("predecessor %d, the item's last event is %d", ev.Prev, was.Last)
	case ev.Position.Ref <= was.Last:
		return nil, fmt.Errorf("event %d stands before its predecessor %d", ev.Position.Ref, was.Last)
	case !was.changeable(by, ev.At):
		return nil, fmt.Errorf("item %d is of %d until %d, and %d changes it at %d", id, was.Owner, was.At, by, ev.At)
	}
	return was, nil
}

// changeable reports whether a client may change or remove the item.
func (i *Item) changeable(by uint64, now events.Millis) bool {
	return i.Available(now) || i.Owner == by
}

// nextID returns an error if an id is not the next one of a store; nil = it was never used.
func nextID(in *Store, id uint64) error {
	var last uint64
	if in != nil {
		last = in.Last
	}
	if id != last+1 {
		return fmt.Errorf("id %d follows %d", id, last)
	}
	return nil
}
