package check

import (
	"math"

	"taskledger/events"
	"taskledger/item"
)

// ItemJournal holds the stores of a shard, as the journal tells them, so that calls to them can be held against it. The
// zero value has read no entry. The judgement shares nothing with what it judges but events and the types of requests.
//
// Every answer has its place in the journal. One that changed something has its events there, once, and they are what
// was asked for. One that changed nothing, a refusal or what was read, was right at some moment between the call and
// the return. An event that no call may have caused has come from nowhere.
type ItemJournal struct {
	Broken bool // the journal goes on, but is corrupt: nothing is held against anybody

	fold   ItemFold
	stores map[string]*ledger
	times  []moment
	lost   bool // a part of the journal, likewise
}

// moment is an entry: when it was committed by the clock of the run, 0 = not known, and its time.
type moment struct {
	at   int64
	time events.Millis
}

// ledger is the changes of a store.
type ledger struct {
	changes  []itemChange
	items    map[int64]*version
	requests map[string][]int // by "CLIENT/KEY": which changes are the first of one
	broken   bool             // its events are corrupt
}

// itemChange is an event of an item.
type itemChange struct {
	moment
	entry   uint64
	request string   // "CLIENT/KEY" of the first change of a request with a key; else ""
	by      int64    // who asked
	was, is *version // before and after it; nil = it was not there
	caused  bool     // by a call that was recorded
}

// version is an item from one change of it to the next.
type version struct {
	item.Item
	from, to int // how many changes of the store had been made when it came, and when it went
}

// there reports whether it is there after so many changes.
func (v *version) there(after int) bool { return v != nil && v.from <= after && after < v.to }

// Entry takes the next entry, before its events; at is when it was committed by the clock of the run, 0 = not known.
func (s *ItemJournal) Entry(e *events.Entry, at int64) {
	s.times = append(s.times, moment{at, e.Time})
	s.fold.Entry(e.Time)
}

// Lost says that a part of the journal was lost.
func (s *ItemJournal) Lost() {
	s.lost = true
	s.fold.Lost()
}

// Forgotten takes that a store is forgotten, or says what forbids it.
func (s *ItemJournal) Forgotten(name string, last uint64) (problem string) {
	return s.fold.Forgotten(name, last)
}

// Apply takes the next event of an item, of the latest entry, or says what forbids it; "" for nothing.
func (s *ItemJournal) Apply(ev *events.Event) (problem string) {
	problem = s.fold.Apply(ev)
	name, _, err := events.ItemOf(ev.Task)
	if err != nil {
		return problem
	}
	if s.stores == nil {
		s.stores = map[string]*ledger{}
	}
	l := s.stores[name]
	if l == nil {
		l = &ledger{items: map[int64]*version{}, requests: map[string][]int{}}
		s.stores[name] = l
	}
	l.broken = l.broken || problem != ""
	if !l.broken {
		l.add(ev, s.times[len(s.times)-1])
	}
	return problem
}

// add takes down an event that the fold allows.
func (l *ledger) add(ev *events.Event, when moment) {
	c := itemChange{moment: when, entry: ev.Position.Ref.Entry(), request: events.RequestKey(ev.RequestID)}
	if c.request != "" {
		l.requests[c.request] = append(l.requests[c.request], len(l.changes))
	}
	switch b := ev.Body.(type) {
	case *events.ItemAdded:
		c.is = &version{Item: item.Item{ID: int64(b.ID), Group: b.Group, At: b.At, Owner: int64(b.Owner), Data: bytesOf(b.Data)}}
		c.by = int64(b.Owner)
	case *events.ItemReplaced:
		c.was = l.items[int64(b.From)]
		is := item.Item{ID: int64(b.To), Group: c.was.Group, At: b.At, Owner: int64(b.Owner), Claims: c.was.Claims, Data: c.was.Data}
		switch {
		case b.Data != nil:
			is.Claims, is.Data = 0, bytesOf(b.Data)
		case c.was.At <= ev.At && b.At > ev.At:
			is.Claims++
		}
		c.is, c.by = &version{Item: is}, int64(b.Owner)
	case *events.ItemRemoved:
		c.was, c.by = l.items[int64(b.ID)], int64(b.Owner)
	}
	l.changes = append(l.changes, c)
	if c.was != nil {
		c.was.to = len(l.changes)
	}
	if c.is != nil {
		c.is.from, c.is.to = len(l.changes), math.MaxInt
		l.items[c.is.ID] = c.is
	}
}

func bytesOf(p events.Payload) []byte {
	data, _ := p.Bytes() // entries with others are not read
	return data
}
