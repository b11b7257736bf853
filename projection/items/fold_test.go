package items_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/item"
	"taskledger/projection/items"
)

const hour = time.Hour

// event is one of an item of the store "s", in the next place of the shard.
func (s *shard) event(lineage, seq uint64, prev events.Ref, body events.Body) events.Event {
	return events.Event{Task: events.StoreItem("s", lineage), Seq: seq, Prev: prev, Body: body, At: s.now,
		Position: events.Position{Ref: events.RefOf(s.entry, s.index)}}
}

// added puts an item of a group into a store.
func (s *shard) added(t *testing.T, store string, client int64, at item.When, group string) int64 {
	t.Helper()
	return s.updated(t, store, &item.Update{Client: client, Adds: []item.Add{{Group: group, At: at, Data: []byte("d")}}})
}

// updated carries an update of a store out, and returns the id of its first change.
func (s *shard) updated(t *testing.T, store string, u *item.Update) int64 {
	t.Helper()
	d := s.decided(t, store, u)
	if len(d.Problems) > 0 {
		t.Fatal(d.Problems)
	}
	if err := s.apply(&d, u.RequestID()); err != nil {
		t.Fatal(err)
	}
	return int64(d.First)
}

func (s *shard) decided(t *testing.T, store string, u *item.Update) items.Decision {
	t.Helper()
	if err := u.Validate(); err != nil {
		t.Fatal(err)
	}
	d, err := s.state.DecideUpdate(store, u, u.RequestID(), s.now)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// claimed carries out a claim of a group of the store "s" for an hour, and returns the id that it made, 0 for nothing.
func (s *shard) claimed(t *testing.T, client int64, group string, random uint64) int64 {
	t.Helper()
	c := &item.Claim{Client: client, Group: group, Duration: hour}
	d, err := s.state.DecideClaim("s", c, "", random, s.now)
	if err != nil || len(d.Problems) > 0 {
		t.Fatal(d.Problems, err)
	}
	if err := s.apply(&d, ""); err != nil {
		t.Fatal(err)
	}
	return int64(d.First)
}

func TestFold_RefusesWhatIsNotTheNextEventWithoutATrace(t *testing.T) {
	data := events.Bytes([]byte("x"))
	for name, c := range map[string]struct {
		want string
		make func(s *shard, was *items.Item) events.Event
	}{
		"an id is left out": {"id 4 follows 2", func(s *shard, _ *items.Item) events.Event {
			return s.event(4, 1, 0, &events.ItemAdded{ID: 4, Group: "g", Owner: 1, Data: data})
		}},
		"an id is used again": {"id 2 follows 2", func(s *shard, _ *items.Item) events.Event {
			return s.event(2, 1, 0, &events.ItemAdded{ID: 2, Group: "g", Owner: 1, Data: data})
		}},
		"an item begins in its middle": {"sequence 2 after 0", func(s *shard, _ *items.Item) events.Event {
			return s.event(3, 2, 0, &events.ItemAdded{ID: 3, Group: "g", Owner: 1, Data: data})
		}},
		"an item begins under another id": {"begins as 1 is added as 3", func(s *shard, _ *items.Item) events.Event {
			return s.event(1, 1, 0, &events.ItemAdded{ID: 3, Group: "g", Owner: 1, Data: data})
		}},
		"an item has no data": {"without data", func(s *shard, _ *items.Item) events.Event {
			return s.event(3, 1, 0, &events.ItemAdded{ID: 3, Group: "g", Owner: 1})
		}},
		"what is gone is replaced": {"item 1 is not there", func(s *shard, was *items.Item) events.Event {
			return s.event(1, 3, was.Last, &events.ItemReplaced{From: 1, To: 3, Owner: 1})
		}},
		"what is gone is removed": {"item 1 is not there", func(s *shard, was *items.Item) events.Event {
			return s.event(1, 3, was.Last, &events.ItemRemoved{ID: 1, Owner: 1})
		}},
		"a replacement gets an old id": {"id 1 follows 2", func(s *shard, was *items.Item) events.Event {
			return s.event(1, 3, was.Last, &events.ItemReplaced{From: 2, To: 1, Owner: 1})
		}},
		"a sequence is left out": {"sequence 4 follows 2", func(s *shard, was *items.Item) events.Event {
			return s.event(1, 4, was.Last, &events.ItemRemoved{ID: 2, Owner: 1})
		}},
		"a predecessor is another": {"predecessor 7", func(s *shard, _ *items.Item) events.Event {
			return s.event(1, 3, 7, &events.ItemRemoved{ID: 2, Owner: 1})
		}},
		"an item is of another lineage": {"began as 1, not as 2", func(s *shard, was *items.Item) events.Event {
			return s.event(2, 3, was.Last, &events.ItemRemoved{ID: 2, Owner: 1})
		}},
		"another client removes what is held": {"item 2 is of 1", func(s *shard, was *items.Item) events.Event {
			return s.event(1, 3, was.Last, &events.ItemRemoved{ID: 2, Owner: 2})
		}},
		"another client replaces what is held": {"item 2 is of 1", func(s *shard, was *items.Item) events.Event {
			return s.event(1, 3, was.Last, &events.ItemReplaced{From: 2, To: 3, Owner: 2})
		}},
		"an event is of no store": {"no item of a store", func(s *shard, was *items.Item) events.Event {
			ev := s.event(1, 3, was.Last, &events.ItemRemoved{ID: 2, Owner: 1})
			ev.Task = "crawl/1"
			return ev
		}},
		"an event is of no item": {"no event of an item", func(s *shard, was *items.Item) events.Event {
			return s.event(1, 3, was.Last, &events.Lost{})
		}},
		"a request is of another client": {`request "8/k#`, func(s *shard, was *items.Item) events.Event {
			ev := s.event(1, 3, was.Last, &events.ItemRemoved{ID: 2, Owner: 1})
			ev.RequestID = events.ItemRequestID(8, "k", nil)
			return ev
		}},
		"a request is none": {`request "k"`, func(s *shard, was *items.Item) events.Event {
			ev := s.event(1, 3, was.Last, &events.ItemRemoved{ID: 2, Owner: 1})
			ev.RequestID = "k"
			return ev
		}},
		"a request is carried out twice": {`request "1/once#`, func(s *shard, was *items.Item) events.Event {
			ev := s.event(1, 3, was.Last, &events.ItemRemoved{ID: 2, Owner: 1})
			ev.RequestID = events.ItemRequestID(1, "once", nil)
			return ev
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShard()
			first := s.event(1, 1, 0, &events.ItemAdded{ID: 1, Group: "g", At: s.now, Owner: 1, Data: data})
			first.RequestID = events.ItemRequestID(1, "once", nil)
			if err := s.state.Fold(&first); err != nil {
				t.Fatal(err)
			}
			s.later(time.Second)
			held := s.event(1, 2, first.Position.Ref, &events.ItemReplaced{From: 1, To: 2, At: s.now.Add(hour), Owner: 1})
			if err := s.state.Fold(&held); err != nil {
				t.Fatal(err)
			}
			s.later(time.Second)
			before, bytes := rows(s.state), s.state.Bytes()
			ev := c.make(s, s.state.Item("s", 2))
			if err := s.state.Fold(&ev); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("folded with %v, want %q", err, c.want)
			}
			if !slices.EqualFunc(rows(s.state), before, slices.Equal) || s.state.Bytes() != bytes {
				t.Error("the refused event left a trace")
			}
		})
	}
}

func TestFold_AfterTheEndOfAJournalWasLostUsesNoIdTwiceInAnyStore(t *testing.T) {
	s := newShard()
	s.added(t, "s", 1, 0, "g")
	kept := rows(s.state) // what a back-up has
	s.later(time.Second)
	lost := map[string]int64{"s": s.added(t, "s", 1, 0, "g"), "lost": s.added(t, "lost", 1, 0, "g")}

	again := &shard{state: restored(t, kept, s.entry, s.now), entry: s.entry + 1, now: s.now}
	again.state.Recovered()
	again.state.Lost(2, 0)
	for store, id := range lost {
		if got := again.added(t, store, 1, 0, "g"); got <= id {
			t.Errorf("store %q: id %d is given again, %d was given in the lost end", store, got, id)
		}
	}
	for store := range lost {
		before := int64(again.state.Store(store).Last)
		if got := again.added(t, store, 1, 0, "g"); got != before+1 {
			t.Errorf("store %q: id %d after %d, want the next one", store, got, before)
		}
	}
}

func TestFold_ForgetsAGroupWithItsLastItemAndAStoreNever(t *testing.T) {
	s := newShard()
	id := s.added(t, "s", 1, 0, "g")
	s.updated(t, "s", &item.Update{Client: 1, Deletes: []int64{id}})
	s.state.Groups("s", "", func(name string) bool { t.Errorf("group %s is there", name); return true })
	if s.state.Len() != 0 || s.state.Bytes() != 0 {
		t.Errorf("%d items of %d bytes are left", s.state.Len(), s.state.Bytes())
	}
	if got := s.added(t, "s", 1, 0, "g"); got != id+1 {
		t.Errorf("the next id is %d, want %d", got, id+1)
	}
}

func TestRipen_MakesAvailableWhatIsDueAndTellsOfEach(t *testing.T) {
	s := newShard()
	s.added(t, "s", 1, -2000, "g")
	s.added(t, "s", 1, -1000, "g")
	if got := s.state.NextDue(); got != s.now+1000 {
		t.Fatalf("the next is due at %d, want %d", got, s.now+1000)
	}
	for _, step := range []struct {
		after events.Millis
		want  []uint64
		next  events.Millis
	}{{999, nil, s.now + 1000}, {1000, []uint64{2}, s.now + 2000}, {5000, []uint64{1}, 0}} {
		var got []uint64
		moved := s.state.Ripen(s.now+step.after, func(i *items.Item) { got = append(got, i.ID) })
		if !slices.Equal(got, step.want) || moved != (len(step.want) > 0) || s.state.NextDue() != step.next {
			t.Errorf("after %d ms: %v, moved %t, next %d; want %v, next %d", step.after, got, moved, s.state.NextDue(), step.want, step.next)
		}
	}
}
