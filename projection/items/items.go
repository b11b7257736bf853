// Package items is the fold of the stores of a shard: their items, and the keys of the requests that changed them. It
// is pure: state follows from events, and events from state and request. Package item describes items, updates and
// claims.
package items

import (
	"cmp"

	"github.com/tidwall/btree"

	"taskledger/events"
	"taskledger/projection/record"
	"taskledger/projection/steady"
)

// Limits of what a shard holds.
const (
	MaxItems  = 1_000_000 // of all stores of a shard
	MaxStores = 10_000
	MaxGroups = 100_000 // of all stores of a shard, that have items
)

// Item is an item as it is in the state. It is never changed: what changes an item puts another one in its place.
type Item struct {
	ID      uint64
	Lineage uint64 // the id that it was added with
	Owner   uint64
	At      events.Millis // available from then on
	Last    events.Ref    // the item's last event
	Data    events.Payload
	Group   *Group
	Seq     uint64 // of Last
	Claims  uint64 // how often it was claimed since it was added, or got other data
}

// Available reports whether everybody may have it at a time.
func (i *Item) Available(now events.Millis) bool { return i.At <= now }

// bytes is about what an item takes in a snapshot.
func (i *Item) bytes() int64 { return itemBytes + int64(len(i.Data)) }

// data returns how many bytes of data the item has, without their codec.
func (i *Item) data() int64 { return int64(max(len(i.Data)-1, 0)) }

const (
	// itemBytes counts the bytes that an item takes besides its data.
	itemBytes = 40
	// groupBytes counts the bytes that a group takes besides its name.
	groupBytes = 20
)

// Group holds the items of one group of a store.
type Group struct {
	Store *Store
	Name  string

	number uint64 // of the event that made it, by its Ref
	byID   *btree.BTreeG[*Item]
	free   *btree.BTreeG[*Item] // those that are available, oldest first
	held   *btree.BTreeG[*Item] // the others, by the time that they are
	sums   sums
}

// sums are kept with every item that comes and goes.
type sums struct {
	claimed int   // items that are not available, and were claimed before
	data    int64 // bytes
}

// Counts count items by where they are: each is in one of them.
type Counts struct {
	Available int // as MakeDue has found
	Waiting   int // for their time, and never claimed since they were added or got other data
	Claimed   int // the others
}

// bytes is about what a group takes in a snapshot.
func (g *Group) bytes() int64 { return groupBytes + int64(len(g.Name)) }

// Store holds the items of a task store.
type Store struct {
	Name string
	Last uint64 // id of the last change

	number uint64 // of the event that made it, by its Ref
	groups btree.Map[string, *Group]
	keys   btree.Map[events.Ref, *key]
	at     events.Millis // of its last event
	due    events.Millis // when it may be forgotten; 0 = it has items
	gaveUp events.Millis // when the latest request was carried out whose key was given up for want of room; 0 = none was
}

// Stores holds the state of all stores of a shard. The zero value has seen no event. A shard's state has one; it
// must not be copied.
type Stores struct {
	byName map[string]*Store
	all    *btree.BTreeG[*Item] // by store and id
	held   *btree.BTreeG[*Item] // those that are not available, by the time that they are
	groups btree.Map[uint64, *Group]
	keys   keys
	clock  *steady.Clock
	empty  *btree.BTreeG[*Store] // those without items, the one first that may be forgotten first
	some   bool                  // others than those that are seen took ids, too
	sums   sums

	restoring restoring
	lostAt    events.Millis // when the end of the journal was lost last; 0 = never. Like base it is told by Lost, and no part of the rows
	base      uint64        // behind which the ids of a new store begin, with gone
	gone      uint64        // ids of stores that were forgotten, behind base
	forgotten record.Chain
	bytes     int64
}

var quiet = btree.Options{NoLocks: true}

func byStore(a, b *Item) bool {
	if x, y := a.Group.Store.number, b.Group.Store.number; x != y {
		return x < y
	}
	return a.ID < b.ID
}

func byID(a, b *Item) bool { return a.ID < b.ID }

// byTime orders by what time items are available from, then by id.
func byTime(a, b *Item) bool { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) < 0 }

// byTimeOfAll is byTime of items of several stores.
func byTimeOfAll(a, b *Item) bool { return a.At < b.At || a.At == b.At && a.Last < b.Last }

// CountBy has the time count by a clock for which requests are remembered. Without it all time does.
func (s *Stores) CountBy(c *steady.Clock) { s.clock = c }

// OnlySome says that the events of some items alone will be folded: the others took ids in between.
func (s *Stores) OnlySome() { s.some = true }

// Len returns the number of items of all stores, and Bytes about how many bytes these and their groups take in a
// snapshot. Keys are not counted: what is refused for want of room would not have them forgotten.
func (s *Stores) Len() int {
	if s.all == nil {
		return 0
	}
	return s.all.Len()
}

func (s *Stores) Bytes() int64 { return s.bytes }

// Store returns a store, nil for one that was never used.
func (s *Stores) Store(name string) *Store { return s.byName[name] }

// Item returns the item of an id, nil if there is none.
func (s *Stores) Item(store string, id uint64) *Item {
	in := s.byName[store]
	if in == nil || s.all == nil {
		return nil
	}
	found, _ := s.all.Get(&Item{ID: id, Group: &Group{Store: in}})
	return found
}

// Groups calls each with the groups of a store that have items and whose names are greater than after, in the order of
// the bytes of the names, until it returns false.
func (s *Stores) Groups(store, after string, each func(*Group) bool) {
	in := s.byName[store]
	if in == nil {
		return
	}
	in.groups.Ascend(after, func(name string, g *Group) bool { return name == after || each(g) })
}

// Counts returns the counts of the items of all stores.
func (s *Stores) Counts() Counts { return countsOf(s.Len(), s.held, s.sums) }

// Counts returns the counts of the items of the group.
func (g *Group) Counts() Counts { return countsOf(g.byID.Len(), g.held, g.sums) }

func countsOf(all int, held *btree.BTreeG[*Item], of sums) Counts {
	if held == nil {
		return Counts{}
	}
	return Counts{Available: all - held.Len(), Waiting: held.Len() - of.claimed, Claimed: of.claimed}
}

// Data returns how many bytes of data the items of the group have.
func (g *Group) Data() int64 { return g.sums.data }

// Oldest returns since when the first of the available items is; 0 = none is available.
func (g *Group) Oldest() events.Millis { return nextOf(g.free) }

// Group calls each with the items of a group whose ids are greater than after, by id, until it returns false.
func (s *Stores) Group(store, name string, after uint64, each func(*Item) bool) {
	g := s.group(store, name)
	if g == nil {
		return
	}
	g.byID.Ascend(&Item{ID: after + 1}, each)
}

// Free is the number of items of a group that MakeDue has found available.
func (s *Stores) Free(store, group string) int {
	g := s.group(store, group)
	if g == nil {
		return 0
	}
	return g.free.Len()
}

// NextOf returns when the next item of a group becomes available that is not; 0 = there is none.
func (s *Stores) NextOf(store, group string) events.Millis {
	g := s.group(store, group)
	if g == nil {
		return 0
	}
	return nextOf(g.held)
}

// nextOf is the earliest time of items in the order of their times; 0 = there are none.
func nextOf(ordered *btree.BTreeG[*Item]) events.Millis {
	if ordered == nil {
		return 0
	}
	if i, some := ordered.Min(); some {
		return i.At
	}
	return 0
}

func (s *Stores) group(store, name string) *Group {
	in := s.byName[store]
	if in == nil {
		return nil
	}
	g, _ := in.groups.Get(name)
	return g
}

// NextDue returns when the next item becomes available that is not; 0 = there is none.
func (s *Stores) NextDue() events.Millis { return nextOf(s.held) }

// MakeDue makes the items available whose time has come, and calls each, unless that is nil, with every one. It is no
// part of the fold, which has no clock: what is available is a function of the items and of the latest time given.
func (s *Stores) MakeDue(now events.Millis, each func(*Item)) (moved bool) {
	for due := s.NextDue(); due != 0 && due <= now; due = s.NextDue() {
		i, _ := s.held.PopMin()
		i.Group.held.Delete(i)
		i.Group.free.Set(i)
		s.claimed(i, -1)
		if each != nil {
			each(i)
		}
		moved = true
	}
	return moved
}

// put places an item that is in no place; now tells whether it is available.
func (s *Stores) put(i *Item, now events.Millis) {
	if s.all == nil {
		s.all, s.held = btree.NewBTreeGOptions(byStore, quiet), btree.NewBTreeGOptions(byTimeOfAll, quiet)
	}
	s.all.Set(i)
	i.Group.byID.Set(i)
	if i.Available(now) {
		i.Group.free.Set(i)
	} else {
		s.held.Set(i)
		i.Group.held.Set(i)
		s.claimed(i, 1)
	}
	i.Group.sums.data += i.data()
	s.bytes += i.bytes()
}

// claimed counts an item that becomes one of those that are not available, or was one of them.
func (s *Stores) claimed(i *Item, by int) {
	if i.Claims > 0 {
		s.sums.claimed += by
		i.Group.sums.claimed += by
	}
}

// take takes an item out of all places. Its group stays until prune.
func (s *Stores) take(i *Item) {
	s.all.Delete(i)
	i.Group.byID.Delete(i)
	if _, held := s.held.Delete(i); held {
		i.Group.held.Delete(i)
		s.claimed(i, -1)
	} else {
		i.Group.free.Delete(i)
	}
	i.Group.sums.data -= i.data()
	s.bytes -= i.bytes()
}

// prune forgets a group without items.
func (s *Stores) prune(g *Group) {
	if g.byID.Len() == 0 {
		g.Store.groups.Delete(g.Name)
		s.groups.Delete(g.number)
		s.bytes -= g.bytes()
		s.reindex(g.Store)
	}
}

// storeOf returns a store, which an event makes if need be.
func (s *Stores) storeOf(name string, by events.Ref) *Store {
	if in := s.byName[name]; in != nil {
		return in
	}
	return s.newStore(name, uint64(by))
}

func (s *Stores) newStore(name string, number uint64) *Store {
	if s.byName == nil {
		s.byName = map[string]*Store{}
	}
	in := &Store{Name: name, number: number}
	s.byName[name] = in
	return in
}

// groupOf returns a group of a store, which an event makes if need be.
func (s *Stores) groupOf(in *Store, name string, by events.Ref) *Group {
	if g, there := in.groups.Get(name); there {
		return g
	}
	return s.newGroup(in, name, uint64(by))
}

func (s *Stores) newGroup(in *Store, name string, number uint64) *Group {
	g := &Group{
		Store:  in,
		Name:   name,
		number: number,
		byID:   btree.NewBTreeGOptions(byID, quiet),
		free:   btree.NewBTreeGOptions(byTime, quiet),
		held:   btree.NewBTreeGOptions(byTime, quiet),
	}
	in.groups.Set(name, g)
	s.groups.Set(number, g)
	s.bytes += g.bytes()
	s.reindex(in)
	return g
}
