package items_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/item"
	"taskledger/projection/items"
)

// next is an event of the item of a lineage that would come next in s.
func (s *shard) next(lineage, seq uint64, prev events.Ref, body events.Body) *events.Event {
	return &events.Event{Task: events.StoreItem(store, lineage), Seq: seq, Prev: prev, At: s.now, Body: body,
		Position: events.Position{Ref: events.RefOf(s.entry, s.index)}}
}

// An owner decides none of these: a journal that has one is damaged. Nothing of it stays.
func TestFold_RefusesWhatTheStateDoesNotAllowAndLeavesNoTrace(t *testing.T) {
	data := events.Bytes(nil)
	for want, make := range map[string]func(s *shard, was *items.Item) *events.Event{
		"id 9 follows 2": func(s *shard, _ *items.Item) *events.Event {
			return s.next(9, 1, 0, &events.ItemAdded{ID: 9, Group: "g", Owner: 1, Data: data})
		},
		"id 2 follows 2": func(s *shard, was *items.Item) *events.Event {
			return s.next(1, 2, was.Last, &events.ItemReplaced{From: 1, To: 2, Owner: 1})
		},
		"begins as 7": func(s *shard, _ *items.Item) *events.Event {
			return s.next(7, 1, 0, &events.ItemAdded{ID: 3, Group: "g", Owner: 1, Data: data})
		},
		"without data": func(s *shard, _ *items.Item) *events.Event {
			return s.next(3, 1, 0, &events.ItemAdded{ID: 3, Group: "g", Owner: 1})
		},
		"item 5 is not there": func(s *shard, was *items.Item) *events.Event {
			return s.next(1, 2, was.Last, &events.ItemRemoved{ID: 5, Owner: 1})
		},
		"began as 1, not as 2": func(s *shard, was *items.Item) *events.Event {
			return s.next(2, 2, was.Last, &events.ItemRemoved{ID: 1, Owner: 1})
		},
		"sequence 3 follows 1": func(s *shard, was *items.Item) *events.Event {
			return s.next(1, 3, was.Last, &events.ItemRemoved{ID: 1, Owner: 1})
		},
		"predecessor 0": func(s *shard, _ *items.Item) *events.Event {
			return s.next(1, 2, 0, &events.ItemRemoved{ID: 1, Owner: 1})
		},
		"stands before its predecessor": func(s *shard, was *items.Item) *events.Event {
			ev := s.next(1, 2, was.Last, &events.ItemRemoved{ID: 1, Owner: 1})
			ev.Position.Ref = was.Last
			return ev
		},
		"is of 1 until": func(s *shard, _ *items.Item) *events.Event {
			held := s.state.Item(store, 2)
			return s.next(2, 2, held.Last, &events.ItemRemoved{ID: 2, Owner: 8})
		},
		"no item of a store": func(s *shard, was *items.Item) *events.Event {
			ev := s.next(1, 2, was.Last, &events.ItemRemoved{ID: 1, Owner: 1})
			ev.Task = "orders/1"
			return ev
		},
		"no event of an item": func(s *shard, was *items.Item) *events.Event { return s.next(1, 2, was.Last, &events.Deleted{}) },
	} {
		s := newShard()
		s.update(t, &item.Update{Client: 1, Adds: []item.Add{{Group: "g"}, {Group: "g", At: -60_000}}})
		s.later(time.Second)
		ev := make(s, s.state.Item(store, 1))
		before := rows(s.state)
		if err := s.state.Fold(ev); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if !slices.EqualFunc(before, rows(s.state), slices.Equal) {
			t.Errorf("%q was refused and left a trace", want)
		}
	}
}

// What changes while a snapshot is being written is in it as it was when it began.
func TestRows_AreThoseOfTheBeginningWhateverChanges(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Key: "k", Adds: adds(300)})
	then := rows(s.state)
	var writes []func(int, *wire.Writer)
	var counts []int
	for _, of := range items.Sections {
		n, write := of.List(s.state)
		writes, counts = append(writes, write), append(counts, n)
	}
	s.later(time.Second)
	s.update(t, &item.Update{Client: 1, Key: "l", Deletes: []int64{1, 150, 300}, Changes: []item.Change{{ID: 2, Data: []byte("x")}}, Adds: []item.Add{{Group: "new"}}})
	for i := range items.Sections {
		var w wire.Writer
		w.Array(counts[i])
		for n := range counts[i] {
			writes[i](n, &w)
		}
		if !slices.Equal(w.B, then[i]) {
			t.Errorf("the rows of %s are others", items.Sections[i].Name)
		}
	}
}
