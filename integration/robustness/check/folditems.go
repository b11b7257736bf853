package check

import (
	"cmp"
	"fmt"
	"strings"

	"taskledger/events"
)

// ItemFold folds the items of a shard's stores. The zero value has folded no event.
type ItemFold struct {
	stores map[string]*store
	broken map[string]bool // stores that had an illegal event: what follows tells nothing
	clock  foldClock
	gone   uint64 // the last id of the stores that were forgotten: others begin behind it
	lost   bool   // a part of the journal: a store that comes may have been there
}

type store struct {
	last  uint64
	there map[uint64]held
	keys  map[string]use
	uses  map[string]int // keys of each client so far
}

// use records when a key was used, and its ordinal among those of its client.
type use struct {
	at    events.Millis
	count int
}

// held is an item that is there.
type held struct {
	lineage, seq, owner uint64
	prev                events.Ref
	at                  events.Millis
}

// Forgotten forgets a store, or says what forbids it.
func (s *ItemFold) Forgotten(name string, last uint64) string {
	in := s.stores[name]
	if s.broken[name] || s.lost {
		return ""
	}
	if in == nil || len(in.there) > 0 || in.last != last {
		return fmt.Sprintf("store %s is forgotten behind id %d, and is not there, has items or another last id", name, last)
	}
	for key, used := range in.keys {
		client, _, _ := strings.Cut(key, "/")
		if s.clock.Since(used.at) <= 3_600_000 && in.uses[client]-used.count < 64 {
			return fmt.Sprintf("store %s is forgotten with key %s of %d", name, key, used.at)
		}
	}
	delete(s.stores, name)
	s.gone = max(s.gone, last)
	return ""
}

// Entry takes the time of the next entry, before its events.
func (s *ItemFold) Entry(at events.Millis) { s.clock.Entry(at) }

// Apply folds the next event of an item, or says what forbids it; "" for nothing.
func (s *ItemFold) Apply(ev *events.Event) string {
	name, lineage, err := events.ItemOf(ev.Task)
	if err != nil {
		return err.Error()
	}
	if s.stores == nil {
		s.stores, s.broken = map[string]*store{}, map[string]bool{}
	}
	if s.broken[name] {
		return ""
	}
	in := s.stores[name]
	if in == nil {
		in = &store{there: map[uint64]held{}, keys: map[string]use{}, uses: map[string]int{}}
		in.last = s.gone
		if s.lost {
			in.last = lineage - 1
		}
		s.stores[name] = in
	}
	problem := cmp.Or(s.repeated(in, ev), in.apply(ev, lineage))
	s.broken[name] = problem != ""
	return problem
}

// Lost lets the ids of stores that come begin anywhere, and those of every other go on anywhere above those that were
// used: what was lost of the journal may have used them.
func (s *ItemFold) Lost() {
	s.lost = true
	for name := range s.stores {
		s.broken[name] = true
	}
}

func (in *store) apply(ev *events.Event, lineage uint64) string {
	switch b := ev.Body.(type) {
	case *events.ItemAdded:
		if b.ID != in.last+1 || b.ID != lineage || ev.Seq != 1 || ev.Prev != 0 {
			return fmt.Sprintf("item %d of lineage %d, event %d after %d, is added behind %d", b.ID, lineage, ev.Seq, ev.Prev, in.last)
		}
		in.put(b.ID, held{lineage, 1, b.Owner, ev.Position.Ref, b.At})
	case *events.ItemReplaced:
		if problem := in.judge(ev, b.From, b.Owner, lineage); problem != "" {
			return problem
		}
		if b.To != in.last+1 {
			return fmt.Sprintf("item %d becomes %d behind %d", b.From, b.To, in.last)
		}
		delete(in.there, b.From)
		in.put(b.To, held{lineage, ev.Seq, b.Owner, ev.Position.Ref, b.At})
	case *events.ItemRemoved:
		if problem := in.judge(ev, b.ID, b.Owner, lineage); problem != "" {
			return problem
		}
		delete(in.there, b.ID)
	default:
		return "of a kind that is not judged"
	}
	return ""
}

// repeated says what is wrong with the request that an event begins: its key must not be one of the last 64 of its
// client within the hour.
func (s *ItemFold) repeated(in *store, ev *events.Event) string {
	if ev.RequestID == "" {
		return ""
	}
	key := events.RequestKey(ev.RequestID)
	client, _, _ := strings.Cut(key, "/")
	before, was := in.keys[key]
	if was && s.clock.Since(before.at) <= 3_600_000 && in.uses[client]-before.count < 64 {
		return fmt.Sprintf("request %q was carried out at %d already", ev.RequestID, before.at)
	}
	in.uses[client]++
	in.keys[key] = use{ev.At, in.uses[client]}
	return ""
}

func (in *store) put(id uint64, i held) {
	in.last = id
	in.there[id] = i
}

// judge says what keeps an item from being changed by somebody.
func (in *store) judge(ev *events.Event, id, by, lineage uint64) string {
	was, there := in.there[id]
	switch {
	case !there:
		return fmt.Sprintf("item %d is not there", id)
	case was.lineage != lineage || ev.Seq != was.seq+1 || ev.Prev != was.prev:
		return fmt.Sprintf("event %d after %d of item %d, lineage %d, which has %d after %d, lineage %d", ev.Seq, ev.Prev, id, lineage, was.seq, was.prev, was.lineage)
	case was.at > ev.At && was.owner != by:
		return fmt.Sprintf("item %d is of %d until %d, %d changes it at %d", id, was.owner, was.at, by, ev.At)
	}
	return ""
}
