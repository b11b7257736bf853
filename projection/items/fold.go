package items

import (
	"errors"
	"fmt"

	"taskledger/events"
)

// recoveredSkip counts the ids by which every store goes on where the end of a journal was lost: more than that end can
// have used.
const recoveredSkip = 1 << 32

// Fold applies the next event. An error says why the state does not allow it; the state is then as it was.
func (s *Stores) Fold(ev *events.Event) error {
	store, lineage, err := events.ItemOf(ev.Task)
	if err != nil {
		return err
	}
	// The ids that a request got begin behind those that were there before its first event, which names it.
	first := s.next(store)
	switch b := ev.Body.(type) {
	case *events.ItemAdded:
		if err = s.newRequest(store, ev, b.Owner); err == nil {
			err = s.add(store, lineage, ev, b)
		}
	case *events.ItemReplaced:
		if err = s.newRequest(store, ev, b.Owner); err == nil {
			err = s.replace(store, lineage, ev, b)
		}
	case *events.ItemRemoved:
		if err = s.newRequest(store, ev, b.Owner); err == nil {
			err = s.remove(store, lineage, ev, b)
		}
	default:
		err = fmt.Errorf("%s is no event of an item", ev.Kind())
	}
	if err != nil {
		return err
	}
	in := s.byName[store]
	in.at = ev.At
	s.reindex(in)
	if ev.RequestID != "" {
		s.remember(&key{store: in, request: ev.RequestID, first: first, at: ev.At, by: ev.Position.Ref})
	}
	return nil
}

// newRequest returns an error if an event names a request that is not one of its client, or that was carried out
// before.
func (s *Stores) newRequest(store string, ev *events.Event, by uint64) error {
	if ev.RequestID == "" {
		return nil
	}
	if client, is := clientOf(ev.RequestID); !is || client != by {
		return fmt.Errorf("request %q is none of client %d", events.Head(ev.RequestID, events.MaxNameBytes), by)
	}
	if in := s.byName[store]; in != nil && !s.some && s.find(in, ev.RequestID, ev.At) != nil {
		return fmt.Errorf("request %q was carried out before", ev.RequestID)
	}
	if room, _ := s.keyRoom(store, ev.At); !room && !s.some {
		return fmt.Errorf("%d keys, want %d at most", s.keys.inOrder.Len()+1, MaxKeys)
	}
	return nil
}

// Recovered makes sure that no id of a store that is left is used twice where the end of the journal was lost, or
// given up.
func (s *Stores) Recovered() {
	for _, in := range s.byName {
		in.Last = min(in.Last+recoveredSkip, events.MaxItemNumber)
	}
}

// Lost tells how often the journal has lost something, and when last: it may have had stores and requests that are
// not here. The ids of those are not used again, and who repeats one of these is told that nobody knows.
func (s *Stores) Lost(times uint64, at events.Millis) {
	s.base, s.lostAt = min(times, events.MaxItemNumber/recoveredSkip)*recoveredSkip, at
}

func (s *Stores) add(store string, lineage uint64, ev *events.Event, b *events.ItemAdded) error {
	in := s.byName[store]
	if err := s.isNext(store, b.ID); err != nil {
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
	if err := s.isNext(store, b.To); err != nil {
		return err
	}
	is := *was
	is.ID, is.Owner, is.At, is.Last, is.Seq = b.To, b.Owner, b.At, ev.Position.Ref, is.Seq+1
	switch {
	case b.Data != nil:
		is.Data, is.Claims = b.Data, 0
	case was.Available(ev.At) && b.At > ev.At:
		is.Claims++
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
	case ev.Seq != was.Seq+1:
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

// isNext returns an error unless an id is the next one of a store.
func (s *Stores) isNext(store string, id uint64) error {
	if next := s.next(store); id != next && !(s.some && id > next) || id > events.MaxItemNumber {
		return fmt.Errorf("id %d follows %d", id, next-1)
	}
	return nil
}

// next is the id of the next change of a store.
func (s *Stores) next(store string) uint64 {
	if in := s.byName[store]; in != nil {
		return in.Last + 1
	}
	return min(s.base+s.gone, events.MaxItemNumber) + 1
}
