package taskstoretest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"taskledger/internal/testkit"
	"taskledger/item"
	"taskledger/taskstore"
)

// machines are random calls with what has to follow from each.
var machines = map[string]func(f *fixture){
	// As the original's fuzz test, with ids that are there twice.
	"Machine/RandomCallsDoWhatTheyPromise": func(f *fixture) {
		m := &machine{f: f, random: testkit.Rand(f.T), items: map[int64]item.Item{}}
		for range 300 {
			m.step()
		}
	},

	// Each counts up a number that others count up, too, by an update of what it has read.
	"Machine/UpdatesOfManyAtOnceLoseNothing": func(f *fixture) {
		const clients, rounds = 6, 10
		f.add("count", "0")
		var wg sync.WaitGroup
		for c := range clients {
			s := f.open(int64(20 + c))
			wg.Go(func() {
				for done := 0; done < rounds; {
					var is item.Item
					for it, err := range s.Group(f.Context(), "count", taskstore.List{}) {
						if err != nil {
							f.Error(err)
							return
						}
						is = it
					}
					var n int
					_, _ = fmt.Sscan(string(is.Data), &n)
					_, err := s.Update(f.Context(), item.Update{Deletes: []int64{max(is.ID, 1)}, Adds: []item.Add{{Group: "count", Data: fmt.Append(nil, n+1)}}})
					if _, lost := errors.AsType[*item.ConflictError](err); err != nil && !lost {
						f.Error(err)
						return
					}
					if err == nil {
						done++
					}
				}
			})
		}
		wg.Wait()
		if got := f.owned("count"); len(got) != 1 || string(got[0].Data) != fmt.Sprint(clients*rounds) {
			f.Errorf("there is %+v, want %d", got, clients*rounds)
		}
	},

	"Machine/IdsOnlyGrow": func(f *fixture) {
		var last int64
		for range 30 {
			made := f.add("g", "a", "b")
			it := f.mustClaim(f.s, "g", time.Hour)
			for _, id := range append(ids(made), it.ID) {
				if id != last+1 {
					f.Fatalf("id %d after %d", id, last)
				}
				last = id
			}
			f.update(f.s, item.Update{Deletes: []int64{it.ID}})
		}
	},
}

// restarts are the tests of subjects that can be restarted.
var restarts = map[string]func(f *fixture){
	"Restart/KeepsEveryItemAndUsesNoIdTwice": func(f *fixture) {
		var u item.Update
		for i := range 1_000 {
			u.Adds = append(u.Adds, item.Add{Group: "g", Data: fmt.Append(nil, i)})
		}
		f.update(f.s, u)
		held := f.mustClaim(f.s, "g", time.Hour)
		f.update(f.s, item.Update{Deletes: []int64{500}, Depends: []int64{held.ID}})
		last := held.ID
		for range 4 {
			before := f.dump()
			f.subject.Restart(f.T)
			if f.dump() != before {
				f.Error("a restart has changed the store")
			}
			made := f.add("h", "new")
			if made[0].ID != last+1 {
				f.Errorf("after a restart the next id is %d, want %d", made[0].ID, last+1)
			}
			last = made[0].ID
			if _, err := f.other.Update(f.Context(), item.Update{Deletes: []int64{held.ID}}); err == nil {
				f.Error("a restart has ended a claim")
			}
		}
	},

	"Restart/ARepeatedCallIsStillAnsweredAsBefore": func(f *fixture) {
		u := item.Update{Key: "k", Adds: []item.Add{{Group: "g", Data: []byte("a")}}}
		first := f.update(f.s, u)
		f.subject.Restart(f.T)
		if again := f.update(f.s, u); again[0].ID != first[0].ID || len(f.owned("g")) != 1 {
			f.Errorf("answered %+v, and before %+v", again, first)
		}
	},

	"Restart/WhatIsDueLaterIsNotClaimedBefore": func(f *fixture) {
		it := f.update(f.s, item.Update{Adds: []item.Add{{Group: "g", At: after(time.Hour)}}})[0]
		f.subject.Restart(f.T)
		if got := f.claim(f.s, "g", time.Hour); got != nil {
			f.Errorf("claimed %+v", got)
		}
		if got := f.owned("g"); len(got) != 1 || got[0].At != it.At {
			f.Errorf("the item is %+v, want the time %d", got, it.At)
		}
	},
}

// machine makes random calls by two clients, and knows all that is there. Items are due now or in an hour, so that
// no clock decides.
type machine struct {
	f      *fixture
	random *rand.Rand
	items  map[int64]item.Item // by id
	last   int64
}

func (m *machine) one(of ...string) string { return of[m.random.IntN(len(of))] }

// id is one that is there, mostly.
func (m *machine) id() int64 {
	all := slices.Sorted(maps.Keys(m.items))
	if len(all) == 0 || m.random.IntN(20) == 0 {
		return m.last + 1 + m.random.Int64N(3) - m.random.Int64N(m.last+1)
	}
	return all[m.random.IntN(len(all))]
}

func (m *machine) ids(most int) (ids []int64) {
	for range m.random.IntN(most + 1) {
		ids = append(ids, max(m.id(), 1))
	}
	return ids
}

func (m *machine) later() item.When { return []item.When{0, 0, after(time.Hour)}[m.random.IntN(3)] }

func (m *machine) held(id, by int64) bool {
	it := m.items[id]
	return it.Owner != by && it.At > 0
}

func (m *machine) step() {
	s, client := m.f.s, int64(1)
	if m.random.IntN(3) == 0 {
		s, client = m.f.other, 2
	}
	switch m.random.IntN(10) {
	case 0, 1, 2:
		m.claim(s, client)
	case 3:
		m.look()
	default:
		m.update(s, client)
	}
}

func (m *machine) update(s *taskstore.Store, client int64) {
	u := item.Update{Depends: m.ids(1), Deletes: m.ids(2)}
	for _, id := range m.ids(2) {
		u.Changes = append(u.Changes, item.Change{ID: id, At: m.later(), Data: fmt.Append(nil, m.random.IntN(9)), Group: m.one("", "", "", "a", "b")})
	}
	for range m.random.IntN(3) {
		u.Adds = append(u.Adds, item.Add{Group: m.one("a", "b", "c"), At: m.later(), Data: fmt.Append(nil, m.random.IntN(9))})
	}
	var want []string // the problems
	named := map[int64]bool{}
	bad := len(u.Depends)+len(u.Deletes)+len(u.Changes)+len(u.Adds) == 0
	is := func(field string, id int64) {
		it, there := m.items[id]
		if !there || field != "depends" && it.At > 0 && it.Owner != client {
			want = append(want, fmt.Sprintf("%s %d", field, id))
		}
		if field != "depends" {
			bad = bad || named[id]
			named[id] = true
		}
	}
	for _, id := range u.Depends {
		is("depends", id)
	}
	for _, id := range u.Deletes {
		is("deletes", id)
	}
	for _, c := range u.Changes {
		is("updates", c.ID)
		if it, there := m.items[c.ID]; there && !m.held(c.ID, client) && c.Group != "" && c.Group != it.Group {
			want = append(want, fmt.Sprintf("updates %d", c.ID))
		}
	}
	made, err := s.Update(m.f.Context(), u)
	switch {
	case bad:
		if !invalid(err) {
			m.f.Fatalf("update %+v: got %v, want it refused as bad", u, err)
		}
	case len(want) > 0:
		m.f.refused(err, want...)
	case err != nil:
		m.f.Fatalf("update %+v: %v", u, err)
	default:
		m.apply(&u, made, client)
	}
}

func (m *machine) apply(u *item.Update, made []item.Item, client int64) {
	for _, id := range u.Deletes {
		delete(m.items, id)
	}
	put := func(group string, at item.When, data []byte) {
		m.last++
		is := item.Item{ID: m.last, Group: group, Owner: client, Data: data}
		if at < 0 {
			is.At = 1 // stands for in an hour
		}
		m.items[m.last] = is
		m.same(made[0], m.last)
		made = made[1:]
	}
	if len(made) != len(u.Adds)+len(u.Changes) {
		m.f.Fatalf("update %+v has made %+v", u, made)
	}
	for _, a := range u.Adds {
		put(a.Group, a.At, a.Data)
	}
	for _, c := range u.Changes {
		group := m.items[c.ID].Group
		delete(m.items, c.ID)
		put(group, c.At, c.Data)
	}
}

// same fails the test unless an item is as it should be.
func (m *machine) same(got item.Item, id int64) {
	m.f.Helper()
	want, there := m.items[id]
	inAnHour := time.Until(got.At.Time()) > 10*time.Minute
	if !there || got.ID != id || got.Group != want.Group || got.Owner != want.Owner || string(got.Data) != string(want.Data) || inAnHour != (want.At > 0) {
		m.f.Fatalf("item %d is %+v, want %+v", id, got, want)
	}
}

func (m *machine) claim(s *taskstore.Store, client int64) {
	c := item.Claim{Group: m.one("a", "b", "c", "none"), Duration: time.Hour, Depends: m.ids(1)}
	it, err := s.TryClaim(m.f.Context(), c)
	for _, id := range c.Depends {
		if _, there := m.items[id]; !there {
			m.f.refused(err, fmt.Sprintf("depends %d", id))
			return
		}
	}
	free := map[int64]bool{}
	for id, is := range m.items {
		free[id] = is.Group == c.Group && is.At == 0
	}
	some := slices.Contains(slices.Collect(maps.Values(free)), true)
	if err != nil || (it != nil) != some {
		m.f.Fatalf("claim of %s: got %+v, %v, want one: %t", c.Group, it, err, some)
	}
	if it == nil {
		return
	}
	m.last++
	found, err := s.Tasks(m.f.Context(), slices.Sorted(maps.Keys(free))...)
	if err != nil {
		m.f.Fatal(err)
	}
	gone := int64(0)
	for i, id := range slices.Sorted(maps.Keys(free)) {
		if found[i] == nil {
			if gone != 0 || !free[id] {
				m.f.Fatalf("a claim of %s has removed items %d and %d", c.Group, gone, id)
			}
			gone = id
		}
	}
	was := m.items[gone]
	delete(m.items, gone)
	m.items[m.last] = item.Item{ID: m.last, Group: was.Group, At: 1, Owner: client, Data: was.Data}
	m.same(*it, m.last)
}

// look compares all that is there.
func (m *machine) look() {
	n := 0
	for _, group := range []string{"a", "b", "c", "none"} {
		for _, it := range m.f.owned(group) {
			m.same(it, it.ID)
			n++
		}
	}
	if n != len(m.items) {
		m.f.Fatalf("%d items are there, want %d", n, len(m.items))
	}
}
