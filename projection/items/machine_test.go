package items_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/item"
	"taskledger/projection/items"
)

// shard is a state with the journal that led to it.
type shard struct {
	state *items.Stores
	entry uint64
	index int
	now   events.Millis
	all   []events.Event
}

func newShard() *shard { return &shard{state: &items.Stores{}, entry: 1, now: 1_800_000_000_000} }

// apply folds what was decided, as an owner does.
func (s *shard) apply(d *items.Decision, request string) error {
	for i, e := range d.Events {
		ev := events.Event{Task: e.Item.Task, Seq: e.Item.Seq, Prev: e.Item.Prev, Body: e.Body, At: s.now,
			Position: events.Position{Ref: events.RefOf(s.entry, s.index)}}
		if i == 0 {
			ev.RequestID = request
		}
		s.index++
		if err := s.state.Fold(&ev); err != nil {
			return fmt.Errorf("%s: %w", ev.Kind(), err)
		}
		s.all = append(s.all, ev)
	}
	return nil
}

// later begins the next entry.
func (s *shard) later(d time.Duration) {
	s.entry, s.index, s.now = s.entry+1, 0, s.now.Add(d)
	s.state.MakeDue(s.now, nil)
}

// rows returns what a snapshot of the state holds, by section.
func rows(s *items.Stores) (all [][]byte) {
	for _, of := range items.Sections {
		n, write := of.List(s)
		var w wire.Writer
		w.Array(n)
		for i := range n {
			write(i, &w)
		}
		all = append(all, w.B)
	}
	return all
}

func restored(t interface{ Fatal(...any) }, all [][]byte, entry uint64, now events.Millis) *items.Stores {
	s := &items.Stores{}
	for i, of := range items.Sections {
		r := wire.NewReader(all[i])
		for range r.Array() {
			of.Read(s, r)
		}
		if err := r.Close(); err != nil {
			t.Fatal(of.Name, err)
		}
	}
	if err := s.Restored(entry, now); err != nil {
		t.Fatal(err)
	}
	return s
}

// naive models a store by its description: a list of items, and what was answered under a key.
type naive struct {
	last     int64
	items    map[int64]item.Item
	answered map[string]naiveAnswer
	order    map[int64][]string // keys of a client, oldest first
}

type naiveAnswer struct {
	request string
	first   int64
	at      events.Millis
}

func (n *naive) changeable(id, by int64, now events.Millis) bool {
	i, there := n.items[id]
	return there && (i.At <= now || i.Owner == by)
}

// free is the items that a claim of the group chooses among.
func (n *naive) free(group string, now events.Millis) []item.Item {
	var all []item.Item
	for i := range maps.Values(n.items) {
		if i.Group == group && i.At <= now {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b item.Item) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) })
	return all[:min(len(all), items.Head)]
}

func (n *naive) remember(client int64, request string, first int64, now events.Millis) {
	key := events.RequestKey(request)
	if _, again := n.answered[key]; again {
		n.order[client] = slices.DeleteFunc(n.order[client], func(k string) bool { return k == key })
	}
	n.answered[key] = naiveAnswer{request, first, now}
	n.order[client] = append(n.order[client], key)
	if len(n.order[client]) > items.KeysPerClient {
		delete(n.answered, n.order[client][0])
		n.order[client] = n.order[client][1:]
	}
}

// known returns the answer of a request that was carried out within the hour before.
func (n *naive) known(request string, now events.Millis) (naiveAnswer, bool) {
	a, is := n.answered[events.RequestKey(request)]
	return a, is && a.at+items.KeysLast >= now
}

// TestStores_DoWhatTheirDescriptionSays holds decisions and fold to a naive store: what is answered, what is there
// afterwards, and that a snapshot and a replay lead to the same state.
func TestStores_DoWhatTheirDescriptionSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShard()
		stores := map[string]*naive{"one": nil, "two": nil}
		for name := range stores {
			stores[name] = &naive{items: map[int64]item.Item{}, answered: map[string]naiveAnswer{}, order: map[int64][]string{}}
		}
		groups := []string{"a", "b", "c/d e"}
		keys := map[int64]int{}
		pick := func(what string) (string, *naive) {
			name := rapid.SampledFrom([]string{"one", "two"}).Draw(t, what)
			return name, stores[name]
		}
		// Mostly what is there, or most requests would be refused; the other ids are gone, or to come.
		id := func(n *naive) int64 {
			if there := slices.Sorted(maps.Keys(n.items)); len(there) > 0 && rapid.IntRange(0, 9).Draw(t, "there") > 0 {
				return rapid.SampledFrom(there).Draw(t, "id")
			}
			return rapid.Int64Range(1, n.last+2).Draw(t, "any id")
		}
		ids := func(n *naive, most int) (all []int64) {
			if len(n.items) == 0 && rapid.IntRange(0, 9).Draw(t, "none") > 0 {
				return nil
			}
			for range rapid.IntRange(0, most).Draw(t, "ids") {
				all = append(all, id(n))
			}
			return all
		}
		when := func() item.When {
			switch rapid.IntRange(0, 3).Draw(t, "when") {
			case 0:
				return 0
			case 1:
				return item.When(-rapid.Int64Range(1, 5000).Draw(t, "in"))
			case 2:
				return item.When(s.now + events.Millis(rapid.Int64Range(-5000, 5000).Draw(t, "at")))
			}
			return 1
		}
		key := func(client int64) string {
			if rapid.IntRange(0, 2).Draw(t, "keyed") == 0 {
				return ""
			}
			if rapid.IntRange(0, 3).Draw(t, "new key") > 0 {
				keys[client]++
			}
			return fmt.Sprint("k", keys[client])
		}
		client := func() int64 { return rapid.Int64Range(1, 3).Draw(t, "client") }

		t.Repeat(map[string]func(*rapid.T){
			"update": func(*rapid.T) {
				name, n := pick("store")
				u := &item.Update{Client: client(), Depends: ids(n, 2)}
				u.Key = key(u.Client)
				u.Deletes = ids(n, 2)
				for _, of := range ids(n, 2) {
					c := item.Change{ID: of, At: when(), Keep: rapid.Bool().Draw(t, "keep")}
					if !c.Keep {
						c.Data = rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "data")
					}
					if rapid.IntRange(0, 3).Draw(t, "with group") == 0 {
						c.Group = rapid.SampledFrom(groups).Draw(t, "group")
					}
					u.Changes = append(u.Changes, c)
				}
				for range rapid.IntRange(0, 3).Draw(t, "adds") {
					u.Adds = append(u.Adds, item.Add{Group: rapid.SampledFrom(groups).Draw(t, "group"), At: when(), Data: rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "data")})
				}
				if u.Validate() != nil {
					return // empty, or an id twice
				}
				request := u.RequestID()
				d, err := s.state.DecideUpdate(name, u, request, s.now)
				if n.repeats(t, &d, err, request, s.now) {
					return
				}
				n.update(t, s, u, &d, request)
			},
			"claim": func(*rapid.T) {
				name, n := pick("store")
				c := &item.Claim{Client: client(), Group: rapid.SampledFrom(groups).Draw(t, "group"), Depends: ids(n, 1),
					Duration: time.Duration(rapid.IntRange(1, 5000).Draw(t, "duration")) * time.Millisecond}
				c.Key = key(c.Client)
				request, random := c.RequestID(), rapid.Uint64().Draw(t, "random")
				d, err := s.state.DecideClaim(name, c, request, random, s.now)
				if n.repeats(t, &d, err, request, s.now) {
					return
				}
				n.claim(t, s, c, &d, request, random)
			},
			"time": func(*rapid.T) {
				pause := time.Duration(rapid.SampledFrom([]int{0, 1, 100, 3000, 40 * 60_000}).Draw(t, "ms")) * time.Millisecond
				s.later(pause)
			},
			"restart": func(*rapid.T) { s.state = restored(t, rows(s.state), s.entry, s.now) },
			"": func(*rapid.T) {
				var all items.Counts
				for name, n := range stores {
					n.same(t, s, name)
					sum := counted(t, s, name)
					all.Available, all.Waiting, all.Claimed = all.Available+sum.Available, all.Waiting+sum.Waiting, all.Claimed+sum.Claimed
				}
				if got := s.state.Counts(); got != all {
					t.Fatalf("all stores have %+v, want %+v", got, all)
				}
				if got := restored(t, rows(s.state), s.entry, s.now); !slices.EqualFunc(rows(got), rows(s.state), slices.Equal) {
					t.Fatal("restored, the state differs")
				}
			},
		})
		again := &items.Stores{}
		for i := range s.all {
			if err := again.Fold(&s.all[i]); err != nil {
				t.Fatalf("replay: %v", err)
			}
		}
		if !slices.EqualFunc(rows(again), rows(s.state), slices.Equal) {
			t.Fatal("replayed, the state differs")
		}
	})
}

// repeats reports whether a request is answered without a decision, and that it is as it has to be.
func (n *naive) repeats(t *rapid.T, d *items.Decision, err error, request string, now events.Millis) bool {
	was, known := n.known(request, now)
	if request == "" || !known {
		if err != nil || d.Repeated {
			t.Fatalf("decided %+v, %v", d, err)
		}
		return false
	}
	refusal := (*items.Refusal)(nil)
	if was.request != request {
		if !errors.As(err, &refusal) || !refusal.OtherRequest {
			t.Fatalf("another request under the key: %+v, %v", d, err)
		}
		return true
	}
	if err != nil || !d.Repeated || int64(d.First) != was.first || d.Now != was.at || len(d.Events) > 0 {
		t.Fatalf("repeated: %+v, %v; want %+v", d, err, was)
	}
	return true
}

func (n *naive) update(t *rapid.T, s *shard, u *item.Update, d *items.Decision, request string) {
	var want []string
	bad := func(field string, id int64) { want = append(want, fmt.Sprint(field, id)) }
	for _, id := range u.Depends {
		if _, there := n.items[id]; !there {
			bad("depends", id)
		}
	}
	for _, id := range u.Deletes {
		if !n.changeable(id, u.Client, s.now) {
			bad("deletes", id)
		}
	}
	for _, c := range u.Changes {
		switch {
		case !n.changeable(c.ID, u.Client, s.now):
			bad("updates", c.ID)
		case c.Group != "" && c.Group != n.items[c.ID].Group:
			bad("updates", c.ID)
		}
	}
	var got []string
	for _, p := range d.Problems {
		got = append(got, fmt.Sprint(p.Field, p.ID))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("problems %v, want %v", d.Problems, want)
	}
	if len(want) > 0 {
		if len(d.Events) > 0 {
			t.Fatal("events beside problems")
		}
		return
	}
	if err := s.apply(d, request); err != nil {
		t.Fatal(err)
	}
	for _, id := range u.Deletes {
		delete(n.items, id)
	}
	first := n.last + 1
	for _, a := range u.Adds {
		n.last++
		n.items[n.last] = item.Item{ID: n.last, Group: a.Group, At: a.At.From(s.now), Owner: u.Client, Data: a.Data}
	}
	for _, c := range u.Changes {
		n.last++
		is := n.items[c.ID]
		delete(n.items, c.ID)
		is.ID, is.At, is.Owner = n.last, c.At.From(s.now), u.Client
		if !c.Keep {
			is.Data = c.Data
		}
		n.items[n.last] = is
	}
	if len(u.Adds)+len(u.Changes) > 0 && int64(d.First) != first {
		t.Fatalf("first id %d, want %d", d.First, first)
	}
	if request != "" && len(d.Events) > 0 {
		n.remember(u.Client, request, first, s.now)
	}
}

func (n *naive) claim(t *rapid.T, s *shard, c *item.Claim, d *items.Decision, request string, random uint64) {
	missing := 0
	for _, id := range c.Depends {
		if _, there := n.items[id]; !there {
			missing++
		}
	}
	free := n.free(c.Group, s.now)
	switch {
	case len(d.Problems) != missing:
		t.Fatalf("problems %v, want %d", d.Problems, missing)
	case missing > 0 || len(free) == 0:
		if len(d.Events) > 0 || len(d.Changed) > 0 {
			t.Fatalf("nothing to be claimed, and %+v", d)
		}
		return
	}
	was := free[random%uint64(len(free))]
	if len(d.Changed) != 1 || int64(d.Changed[0].ID) != was.ID {
		t.Fatalf("claimed %+v, want %d of %d", d.Changed, was.ID, len(free))
	}
	if err := s.apply(d, request); err != nil {
		t.Fatal(err)
	}
	n.last++
	delete(n.items, was.ID)
	was.ID, was.Owner, was.At = n.last, c.Client, s.now.Add(c.Duration)
	n.items[n.last] = was
	if request != "" {
		n.remember(c.Client, request, n.last, s.now)
	}
}

// counted asserts that the counts of the groups of a store are those of their items, and returns their sums.
func counted(t *rapid.T, s *shard, store string) (all items.Counts) {
	s.state.Groups(store, "", func(g *items.Group) bool {
		var want items.Counts
		var data int64
		var oldest events.Millis
		s.state.Group(store, g.Name, 0, func(i *items.Item) bool {
			data += int64(len(i.Data)) - 1
			switch {
			case i.Available(s.now):
				want.Available++
				if oldest == 0 || i.At < oldest {
					oldest = i.At
				}
			case i.Claims > 0:
				want.Claimed++
			default:
				want.Waiting++
			}
			return true
		})
		if g.Counts() != want || g.Data() != data || g.Oldest() != oldest {
			t.Fatalf("group %s has %+v, %d bytes, the oldest of %d; want %+v, %d, %d", g.Name, g.Counts(), g.Data(), g.Oldest(), want, data, oldest)
		}
		all.Available, all.Waiting, all.Claimed = all.Available+want.Available, all.Waiting+want.Waiting, all.Claimed+want.Claimed
		return true
	})
	return all
}

// same asserts that a store holds what the naive one does.
func (n *naive) same(t *rapid.T, s *shard, name string) {
	groups := map[string][]int64{}
	for i := range maps.Values(n.items) {
		groups[i.Group] = append(groups[i.Group], i.ID)
		got := s.state.Item(name, uint64(i.ID))
		if got == nil || got.Group.Name != i.Group || got.At != i.At || int64(got.Owner) != i.Owner || string(got.Data[1:]) != string(i.Data) {
			t.Fatalf("item %d is %+v, want %+v", i.ID, got, i)
		}
	}
	var names []string
	s.state.Groups(name, "", func(g *items.Group) bool { names = append(names, g.Name); return true })
	if !slices.Equal(names, slices.Sorted(maps.Keys(groups))) {
		t.Fatalf("groups %q, want %v", names, groups)
	}
	for _, group := range names {
		slices.Sort(groups[group])
		var ids []int64
		s.state.Group(name, group, 0, func(i *items.Item) bool { ids = append(ids, int64(i.ID)); return true })
		if !slices.Equal(ids, groups[group]) {
			t.Fatalf("group %s has %v, want %v", group, ids, groups[group])
		}
		if free := len(n.free(group, s.now)); min(items.Head, s.state.Free(name, group)) != free {
			t.Fatalf("%d of group %s are available, want %d", s.state.Free(name, group), group, free)
		}
		var next events.Millis
		for i := range maps.Values(n.items) {
			if i.Group == group && i.At > s.now && (next == 0 || i.At < next) {
				next = i.At
			}
		}
		if got := s.state.NextOf(name, group); got != next {
			t.Fatalf("the next of group %s is available at %d, want %d", group, got, next)
		}
	}
}
