package taskstoretest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"taskledger/taskstore"
)

// model is a store as its document says it, for one caller at a time. Data are different for each item that was added.
type model struct {
	b     *bench
	r     *rand.Rand
	items map[int64]taskstore.Item
	last  int64 // id
	data  int
}

// machine is a random sequence of calls of two clients, each of which does what the model says.
var machine = []property{
	{"RandomCallsDoWhatAModelSays", func(b *bench) {
		seed := rand.Uint64()
		b.Logf("seed %d", seed)
		m := &model{b: b, r: rand.New(rand.NewPCG(seed, 0)), items: map[int64]taskstore.Item{}}
		for range 400 {
			switch m.r.IntN(4) {
			case 0:
				m.claim()
			case 1:
				m.look()
			default:
				m.update()
			}
		}
	}},
}

// held tells if a client may not change an item. Times are now, or far away.
func held(it taskstore.Item, by *taskstore.Store) bool { return !free(it) && it.Owner != by.Client() }

func free(it taskstore.Item) bool { return int64(it.At) <= time.Now().Add(time.Minute).UnixMilli() }

func (m *model) client() *taskstore.Store {
	return []*taskstore.Store{m.b.s, m.b.other}[m.r.IntN(2)]
}

func (m *model) group() string { return "g" + strconv.Itoa(m.r.IntN(3)) }

func (m *model) at() taskstore.When { return []taskstore.When{0, 1, -3_600_000}[m.r.IntN(3)] }

// ids draws some that are there, and seldom one that is not, none of them twice.
func (m *model) ids(most int) (some []int64) {
	all := m.sorted()
	m.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	some = all[:min(len(all), m.r.IntN(most+1))]
	if m.r.IntN(20) == 0 {
		some = append(some, m.last+1+m.r.Int64N(5))
	}
	return some
}

func (m *model) sorted() (all []int64) {
	for id := range m.items {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

func (m *model) update() {
	s, b := m.client(), m.b
	b.Helper()
	u := taskstore.Update{Depends: m.ids(2)}
	for i, id := range m.ids(4) {
		if i%2 == 0 {
			u.Deletes = append(u.Deletes, id)
		} else {
			u.Changes = append(u.Changes, keep(id, m.at()))
		}
	}
	for range m.r.IntN(3) {
		m.data++
		u.Adds = append(u.Adds, taskstore.Add{Group: m.group(), At: m.at(), Data: []byte(strconv.Itoa(m.data))})
	}
	if len(u.Depends)+len(u.Deletes)+len(u.Changes)+len(u.Adds) == 0 {
		return
	}
	if want := m.problems(s, &u); len(want) > 0 {
		_, err := s.Update(b.ctx, &u)
		b.conflict(err, want...)
		return
	}
	m.applied(s, &u, b.updateBy(s, u))
}

// problems are those of an update, in the order in which a store tells them.
func (m *model) problems(s *taskstore.Store, u *taskstore.Update) (all []string) {
	look := func(field string, id int64, change bool) {
		if it, there := m.items[id]; !there {
			all = append(all, gone(field, id))
		} else if change && held(it, s) {
			all = append(all, heldBy(field, id))
		}
	}
	for _, id := range u.Depends {
		look("depends", id, false)
	}
	for _, id := range u.Deletes {
		look("deletes", id, true)
	}
	for _, c := range u.Changes {
		look("updates", c.ID, true)
	}
	return all
}

// applied takes note of what an update has made, and holds it to what was asked.
func (m *model) applied(s *taskstore.Store, u *taskstore.Update, made []taskstore.Item) {
	b := m.b
	b.Helper()
	if len(made) != len(u.Adds)+len(u.Changes) {
		b.Fatalf("%d items were made by %+v", len(made), u)
	}
	for i, it := range made {
		m.last++
		want := taskstore.Item{ID: m.last, Owner: s.Client(), At: it.At}
		at := taskstore.When(0)
		if i < len(u.Adds) {
			want.Group, want.Data, at = u.Adds[i].Group, u.Adds[i].Data, u.Adds[i].At
			b.same(&it, want)
		} else {
			c := u.Changes[i-len(u.Adds)]
			want.Group, at = m.items[c.ID].Group, c.At
			b.same(&it, want) // without its data
			want.Data = m.items[c.ID].Data
			delete(m.items, c.ID)
		}
		if at == 1 && it.At != 1 || free(it) != (at >= 0) {
			b.Fatalf("item %+v for the time %d", it, at)
		}
		m.items[it.ID] = want
	}
	for _, id := range u.Deletes {
		delete(m.items, id)
	}
}

func (m *model) claim() {
	s, b := m.client(), m.b
	b.Helper()
	c := taskstore.Claim{Group: m.group(), Duration: time.Hour, Depends: m.ids(1)}
	it, err := s.Claim(b.ctx, &c)
	if want := m.problems(s, &taskstore.Update{Depends: c.Depends}); len(want) > 0 {
		b.conflict(err, want...)
		return
	}
	if err != nil {
		b.Fatalf("claim: %v", err)
	}
	for id, was := range m.items {
		if was.Group != c.Group || !free(was) {
			continue
		}
		if it == nil {
			b.Fatalf("nothing was claimed, and %+v is there", was)
		}
		if string(was.Data) == string(it.Data) {
			m.last++
			b.same(it, taskstore.Item{ID: m.last, Group: c.Group, At: it.At, Owner: s.Client(), Data: was.Data})
			delete(m.items, id)
			m.items[it.ID] = *it
			return
		}
	}
	if it != nil {
		b.Fatalf("claimed %+v, which is not available", it)
	}
}

// look holds all that the store has to the model.
func (m *model) look() {
	b := m.b
	b.Helper()
	all := b.whole()
	if len(all) != len(m.items) {
		b.Fatalf("%d items, want %d", len(all), len(m.items))
	}
	n := 0
	for i := range all {
		b.same(&all[i], m.items[all[i].ID])
		if all[i].Group == "g0" && free(all[i]) {
			n++
		}
	}
	if got := b.list(taskstore.Page{Group: "g0"}); len(got) != n {
		b.Fatalf("%d available items, want %d", len(got), n)
	}
}
