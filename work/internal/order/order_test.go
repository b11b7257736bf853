package order_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/work/internal/order"
)

type item = order.Item[string]

var epoch = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// model knows of every item where it is, and judges what an Order says by the promises alone.
type model struct {
	order      *order.Order[string]
	threads    int
	now        time.Time
	put        int64
	open       []*item // those that have not ended, in the order in which they came
	processing []*item
	resting    map[*item]time.Time
}

func (m *model) earlier(it *item) *item {
	for _, other := range m.open {
		if other == it {
			return nil
		}
		if other.Key == it.Key && it.Key != "" {
			return other
		}
	}
	return nil
}

// ready returns the items that may be taken.
func (m *model) ready() []*item {
	return slices.DeleteFunc(slices.Clone(m.open), func(it *item) bool {
		due, rests := m.resting[it]
		return m.earlier(it) != nil || slices.Contains(m.processing, it) || rests && due.After(m.now)
	})
}

func (m *model) fetch(t *rapid.T) {
	if !m.order.Room() {
		t.Skip("no room")
	}
	m.put++
	key := rapid.SampledFrom([]string{"", "a", "a", "b", "c", fmt.Sprint(m.put)}).Draw(t, "key")
	it := &item{Value: fmt.Sprint(key, m.put), Key: key, Ordinal: m.put, Try: 1}
	m.open = append(m.open, it)
	m.order.Put(it)
}

func (m *model) take(t *rapid.T) {
	it := m.order.Next()
	ready := m.ready()
	switch {
	case len(m.processing) == m.threads:
		t.Skip("every thread is busy")
	case it == nil && len(ready) > 0:
		t.Fatalf("none is ready, and %s may be taken", ready[0].Value)
	case it == nil:
		t.Skip("none is ready")
	case !slices.Contains(ready, it):
		t.Fatalf("%s is ready, and may not be taken", it.Value)
	}
	m.order.Take()
	m.processing = append(m.processing, it)
	if before := len(m.resting); before > 0 {
		delete(m.resting, it)
	}
}

func (m *model) end(t *rapid.T, how func(it *item)) {
	if len(m.processing) == 0 {
		t.Skip("none is processed")
	}
	i := rapid.IntRange(0, len(m.processing)-1).Draw(t, "which")
	it := m.processing[i]
	m.processing = slices.Delete(m.processing, i, i+1)
	how(it)
}

func (m *model) done(it *item) {
	m.open = slices.DeleteFunc(m.open, func(other *item) bool { return other == it })
	m.order.Done(it)
}

func (m *model) check(t *rapid.T) {
	aside := 0
	for _, it := range m.open {
		due, rests := m.resting[it]
		if m.earlier(it) != nil || rests && due.After(m.now) {
			aside++
		}
	}
	ready := len(m.ready())
	switch {
	case m.order.Processing() != len(m.processing):
		t.Fatalf("%d are processed, want %d", m.order.Processing(), len(m.processing))
	case m.order.Aside() != aside:
		t.Fatalf("%d are set aside, want %d", m.order.Aside(), aside)
	case m.order.Room() != (ready < 2*m.threads && aside < order.MaxAside):
		t.Fatalf("room: %t, with %d ready and %d aside", m.order.Room(), ready, aside)
	case m.order.Ending() != (len(m.open) == len(m.processing)):
		t.Fatalf("ending: %t, and %d of %d are processed", m.order.Ending(), len(m.processing), len(m.open))
	case m.order.Empty() != (len(m.open) == 0):
		t.Fatalf("empty: %t, and %d are open", m.order.Empty(), len(m.open))
	}
	if due, rests := m.order.Due(); rests && !due.After(m.now) {
		t.Fatalf("one is due at %s and has not been woken at %s", due, m.now)
	}
}

func TestOrder_OfOneKeyIsKeptAndNoKeyWaitsForAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.IntRange(1, 4).Draw(t, "threads")
		m := &model{order: order.New[string](2 * threads), threads: threads, now: epoch, resting: map[*item]time.Time{}}
		t.Repeat(map[string]func(*rapid.T){
			"":      m.check,
			"fetch": m.fetch,
			"take":  m.take,
			"done":  func(t *rapid.T) { m.end(t, m.done) },
			"rest": func(t *rapid.T) {
				after := time.Duration(rapid.IntRange(1, 5).Draw(t, "after"))
				m.end(t, func(it *item) {
					tried := it.Try
					m.resting[it] = m.now.Add(after)
					m.order.Rest(it, m.resting[it])
					if it.Try != tried+1 {
						t.Fatalf("%s is to be tried for the time %d, and was for %d", it.Value, it.Try, tried)
					}
				})
			},
			"wait": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 3).Draw(t, "for")))
				m.order.Wake(m.now)
			},
		})
	})
}

func TestOrder_SetsAsideUpToItsLimit(t *testing.T) {
	o := order.New[string](2)
	for n := int64(1); o.Room(); n++ {
		o.Put(&item{Key: "hot", Ordinal: n})
		if o.Next().Ordinal != 1 {
			t.Fatalf("item %d is ready", o.Next().Ordinal)
		}
	}
	if o.Aside() != order.MaxAside {
		t.Errorf("%d are set aside, want %d", o.Aside(), order.MaxAside)
	}
	for n := int64(1); n <= order.MaxAside+1; n++ {
		it := o.Next()
		if it == nil || it.Ordinal != n {
			t.Fatalf("%+v follows item %d", it, n-1)
		}
		o.Take()
		if o.Next() != nil {
			t.Fatalf("item %d is ready beside item %d", o.Next().Ordinal, n)
		}
		o.Done(it)
	}
	if !o.Empty() {
		t.Error("items are left")
	}
}

// With one item less than the limit set aside, and all that are ready and processed set aside by Rest after it.
func TestOrder_ThatRestsSetsAsideThreeMoreForEachThreadAtMost(t *testing.T) {
	const threads = 2
	o := order.New[string](2 * threads)
	n := int64(0)
	put := func(key string) {
		n++
		if !o.Room() {
			t.Fatalf("no room for item %d, with %d set aside", n, o.Aside())
		}
		o.Put(&item{Key: key, Ordinal: n, Try: 1})
	}
	var processing []*item
	take := func() {
		processing = append(processing, o.Next())
		o.Take()
	}
	for range threads {
		put("")
		take()
	}
	for o.Aside() < order.MaxAside-1 {
		put("hot")
	}
	for range 2*threads - 1 {
		put("")
	}
	if o.Room() {
		t.Errorf("room for more, with %d set aside", o.Aside())
	}
	for rested := 0; rested < 3*threads; rested++ {
		o.Rest(processing[0], epoch)
		if processing = processing[1:]; o.Next() != nil {
			take()
		}
		if o.Room() {
			t.Fatalf("room for more, with %d set aside", o.Aside())
		}
	}
	if want := order.MaxAside - 1 + 3*threads; o.Aside() != want {
		t.Errorf("%d are set aside, want %d", o.Aside(), want)
	}
}

func TestOrder_AnItemThatAwaitsKeepsItsKeyAndNoThread(t *testing.T) {
	o := order.New[string](4)
	first, second := &item{Key: "a", Ordinal: 1}, &item{Key: "a", Ordinal: 2}
	o.Put(first)
	o.Put(second)
	o.Take()
	o.Await(first)
	if o.Processing() != 0 || o.Aside() != 2 || o.Next() != nil || o.Empty() || o.Ending() {
		t.Errorf("%d are processed, %d aside, next %v", o.Processing(), o.Aside(), o.Next())
	}
	o.Awaited(first)
	o.Done(first)
	if o.Next() != second || o.Aside() != 0 || o.Processing() != 0 {
		t.Errorf("next %v, %d aside", o.Next(), o.Aside())
	}
}
