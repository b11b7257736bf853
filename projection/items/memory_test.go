package items_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/item"
	"taskledger/projection/items"
)

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// fill adds so many items of 16 bytes to four groups of the store "s": the first half of them available, the others
// held.
func (s *shard) fill(t testing.TB, n int) (data int64) {
	groups := []string{"a", "b", "c", "d"}
	for i := range n {
		if s.index == 1000 {
			s.entry, s.index = s.entry+1, 0
		}
		at := s.now - events.Millis(i%1000)
		if i >= n/2 {
			at = s.now + events.Millis(1+i*7919%100_000)
		}
		body := &events.ItemAdded{ID: uint64(i + 1), Group: groups[i%len(groups)], At: at, Owner: 7, Data: events.Bytes([]byte("0123456789abcdef"))}
		ev := s.event(body.ID, 1, 0, body)
		s.index++
		if err := s.state.Fold(&ev); err != nil {
			t.Fatal(err)
		}
		data += int64(len(body.Data))
	}
	return data
}

// TestLimits_AShardHoldsAMillionItemsOf256BytesAndTheirDataAndNoMore fills one.
func TestLimits_AShardHoldsAMillionItemsOf256BytesAndTheirDataAndNoMore(t *testing.T) {
	const most = 256
	before := heap()
	s := newShard()
	data := s.fill(t, items.MaxItems)
	// Every tenth is replaced, in another order than that of the ids: the trees are as after some use.
	for i := range uint64(items.MaxItems / 10) {
		id := 1 + i*10*7919%items.MaxItems
		was := s.state.Item("s", id)
		if was == nil {
			t.Fatalf("item %d is not there", id)
		}
		if s.index == 1000 {
			s.entry, s.index = s.entry+1, 0
		}
		if s.entry <= was.Last.Entry() {
			s.entry, s.index = was.Last.Entry()+1, 0
		}
		ev := s.event(id, 2, was.Last, &events.ItemReplaced{From: id, To: s.state.Store("s").Last + 1, At: was.At, Owner: 7})
		s.index++
		if err := s.state.Fold(&ev); err != nil {
			t.Fatal(err)
		}
	}
	got := (heap() - before - data) / int64(s.state.Len())
	t.Logf("%d bytes an item besides its data", got)
	if got > most || s.state.Len() != items.MaxItems {
		t.Errorf("%d items, of %d bytes each besides their data, want %d at most", s.state.Len(), got, most)
	}
	if is := s.state.Bytes() / int64(s.state.Len()); is < 16 {
		t.Errorf("%d bytes an item are counted as live, of which 16 are its data", is)
	}
	s.entry, s.index = s.entry+1_000_000, 0
	one := &item.Update{Client: 1, Adds: []item.Add{{Group: "a"}}}
	if _, err := s.state.DecideUpdate("other", one, "", s.now); !full(err, "items") {
		t.Errorf("one more: %v, want a refusal that names the limit", err)
	}
	ev := events.Event{Task: events.StoreItem("other", 1), Seq: 1, At: s.now, Position: events.Position{Ref: events.RefOf(s.entry, s.index)},
		Body: &events.ItemAdded{ID: 1, Group: "a", Owner: 1, Data: events.Bytes(nil)}}
	if err := s.state.Fold(&ev); err == nil || s.state.Len() != items.MaxItems {
		t.Errorf("one more was folded: %v, %d items", err, s.state.Len())
	}
	s.updated(t, "s", &item.Update{Client: 7, Deletes: []int64{int64(s.state.Store("s").Last)}, Adds: one.Adds})
	if id := s.claimed(t, 9, "a", 0); id == 0 {
		t.Error("a claim in a full shard gets nothing")
	}
}

func full(err error, what string) bool {
	refusal, is := errors.AsType[*items.Refusal](err)
	return is && !refusal.OtherRequest && strings.Contains(refusal.Full, what)
}

func TestLimits_AShardHolds10000StoresAnd100000GroupsAndNoMore(t *testing.T) {
	s := newShard()
	of := func(group string) *item.Update { return &item.Update{Client: 1, Adds: []item.Add{{Group: group}}} }
	for i := range items.MaxStores {
		s.updated(t, fmt.Sprint("s", i), of("g"))
		s.later(0)
	}
	if _, err := s.state.DecideUpdate("other", of("g"), "", s.now); !full(err, "stores") {
		t.Errorf("one more store: %v, want a refusal that names the limit", err)
	}
	for i := range items.MaxGroups - items.MaxStores {
		s.updated(t, "s0", of(fmt.Sprint("g", i)))
		s.later(0)
	}
	if _, err := s.state.DecideUpdate("s0", of("other"), "", s.now); !full(err, "groups") {
		t.Errorf("one more group: %v, want a refusal that names the limit", err)
	}
	for what, in := range map[string]struct {
		store string
		id    uint64
	}{"stores": {"other", 1}, "groups": {"s1", 2}} {
		ev := events.Event{Task: events.StoreItem(in.store, in.id), Seq: 1, At: s.now, Position: events.Position{Ref: events.RefOf(s.entry, s.index)},
			Body: &events.ItemAdded{ID: in.id, Group: "other", Owner: 1, Data: events.Bytes(nil)}}
		if err := s.state.Fold(&ev); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("one more of the %s was folded: %v", what, err)
		}
	}
	s.updated(t, "s0", of("g1")) // an old group of an old store
	restored(t, rows(s.state), s.entry, s.now)
}
