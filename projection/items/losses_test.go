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

func TestFold_RefusesARequestThatIsNotItsClientsOrWasCarriedOutWithoutATrace(t *testing.T) {
	for name, request := range map[string]string{
		"of another client": events.ItemRequestID(8, "k", nil),
		"of no client":      "k#aaaaaaaaaaaaaaaa",
		"without a digest":  "1/k",
		"with a zero":       "01/k#aaaaaaaaaaaaaaaa",
		"too long":          events.ItemRequestID(1, strings.Repeat("k", events.MaxNameBytes), nil),
		"carried out":       events.ItemRequestID(1, "once", nil),
		"other, same key":   events.ItemRequestID(1, "once", []byte("another")),
	} {
		s := newShard()
		s.updated(t, "s", &item.Update{Client: 1, Key: "k", Adds: []item.Add{{Group: "g"}}})
		once := s.event(2, 1, 0, &events.ItemAdded{ID: 2, Group: "g", Owner: 1, Data: events.Bytes(nil)})
		once.RequestID = events.ItemRequestID(1, "once", nil)
		if err := s.state.Fold(&once); err != nil {
			t.Fatal(err)
		}
		s.later(hour)
		before, bytes := rows(s.state), s.state.Bytes()
		ev := s.event(3, 1, 0, &events.ItemAdded{ID: 3, Group: "new", Owner: 1, Data: events.Bytes(nil)})
		ev.RequestID = request
		if err := s.state.Fold(&ev); err == nil || !strings.Contains(err.Error(), "request ") {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.EqualFunc(rows(s.state), before, slices.Equal) || s.state.Bytes() != bytes {
			t.Errorf("%s: it was refused and left a trace", name)
		}
		s.later(time.Millisecond)
		ev = s.event(3, 1, 0, ev.Body)
		if ev.RequestID = events.ItemRequestID(1, "once", nil); s.state.Fold(&ev) != nil {
			t.Error("a key is refused after its hour")
		}
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
	again.state.Lost(1, again.now)
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

func TestFold_ForgetsAGroupWithItsLastItemAndCountsOnInItsStore(t *testing.T) {
	s := newShard()
	id := s.added(t, "s", 1, 0, "g")
	s.updated(t, "s", &item.Update{Client: 1, Deletes: []int64{id}})
	s.state.Groups("s", "", func(g *items.Group) bool { t.Errorf("group %s is there", g.Name); return true })
	if s.state.Len() != 0 || s.state.Bytes() != 0 {
		t.Errorf("%d items of %d bytes are left", s.state.Len(), s.state.Bytes())
	}
	if got := s.added(t, "s", 1, 0, "g"); got != id+1 {
		t.Errorf("the next id is %d, want %d", got, id+1)
	}
}

// A group takes room by its name, which a snapshot has once.
func TestBytes_CountTheNameOfEachGroupOnceAsLongAsItHasItems(t *testing.T) {
	of := func(group string, n int) int64 {
		s := newShard()
		for range n {
			s.added(t, "s", 1, 0, group)
		}
		if got := restored(t, rows(s.state), s.entry, s.now).Bytes(); got != s.state.Bytes() {
			t.Errorf("%d bytes, and %d once it is restored", s.state.Bytes(), got)
		}
		return s.state.Bytes()
	}
	long := strings.Repeat("g", events.MaxGroupBytes)
	for n := range 3 {
		if got, want := of(long, n+1)-of("g", n+1), int64(len(long)-1); got != want {
			t.Errorf("%d items: a name longer by %d bytes takes %d more", n+1, want, got)
		}
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
		moved := s.state.MakeDue(s.now+step.after, func(i *items.Item) { got = append(got, i.ID) })
		if !slices.Equal(got, step.want) || moved != (len(step.want) > 0) || s.state.NextDue() != step.next {
			t.Errorf("after %d ms: %v, moved %t, next %d; want %v, next %d", step.after, got, moved, s.state.NextDue(), step.want, step.next)
		}
	}
}

// An export has the events of one item: what other items took or used in between is not there.
func TestOnlySome_TakesIDsAndKeysAsTheyComeButNeverBack(t *testing.T) {
	s := newShard()
	s.state.OnlySome()
	fold := func(want bool, seq uint64, prev events.Ref, body events.Body) events.Ref {
		t.Helper()
		ev := s.event(5, seq, prev, body)
		ev.RequestID = events.ItemRequestID(1, "used again behind 64 others", nil)
		if err := s.state.Fold(&ev); (err == nil) != want {
			t.Errorf("%+v: %v", body, err)
		}
		s.later(time.Second)
		return ev.Position.Ref
	}
	added := fold(true, 1, 0, &events.ItemAdded{ID: 5, Group: "g", Owner: 1, Data: events.Bytes(nil)})
	fold(false, 2, added, &events.ItemReplaced{From: 5, To: 4, Owner: 1})
	replaced := fold(true, 2, added, &events.ItemReplaced{From: 5, To: 9, Owner: 1})
	fold(true, 3, replaced, &events.ItemRemoved{ID: 9, Owner: 1})
	fold(false, 1, 0, &events.ItemAdded{ID: 5, Group: "g", Owner: 1, Data: events.Bytes(nil)})
}

func TestNextOf_IsTheNextTimeOfTheGroupHoweverManyOthersThereAre(t *testing.T) {
	s := newShard()
	if got := s.state.NextOf("s", "g"); got != 0 {
		t.Errorf("of no store: %d", got)
	}
	s.added(t, "s", 1, -1, "other")
	for i := range 300 {
		s.added(t, "s", 1, item.When(-60_000+i), "g")
	}
	if got, want := s.state.NextOf("s", "g"), s.now+59_701; got != want {
		t.Errorf("of 300 that are held: in %d ms, want %d", got-s.now, want-s.now)
	}
	last := int64(s.state.Store("s").Last)
	s.updated(t, "s", &item.Update{Client: 1, Deletes: []int64{last}})
	if got, want := s.state.NextOf("s", "g"), s.now+59_702; got != want {
		t.Errorf("once that is gone: in %d ms, want %d", got-s.now, want-s.now)
	}
	s.later(time.Minute)
	if got := s.state.NextOf("s", "g"); got != 0 {
		t.Errorf("once all are available: %d", got)
	}
}

// The owner is asked by everybody who waits, and does nothing else meanwhile.
func BenchmarkNextOf(b *testing.B) {
	s := newShard()
	s.fill(b, 500_000)
	b.ResetTimer()
	for b.Loop() {
		s.state.NextOf("s", "a")
	}
}
