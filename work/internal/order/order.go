// Package order decides which of the fetched items may be processed next: items of one key one after the other, in the
// order in which they came, and all others side by side. It starts nothing and asks no clock.
//
// An item is ready, being processed, or set aside. It is set aside while an earlier item of its key has not ended,
// while it rests before it is tried again, and while it awaits what somebody else decides. So of each key at most one
// item is ready, being processed, resting or awaiting, and a key whose items are many or slow delays its own items
// alone.
package order

import (
	"container/heap"
	"time"
)

// MaxAside is the number of items set aside from which Room reports false.
const MaxAside = 1_000

// Item is an item of an iterator.
type Item[I any] struct {
	Value   I
	Key     string // "" = none: the item waits for no other one
	Ordinal int64  // 1 for the first item of the iterator
	Try     int    // 1 at first, and one more each time that the item has rested

	due time.Time // while it rests
}

// Order holds the items that were put and have not ended. One goroutine at a time uses it.
type Order[I any] struct {
	ahead      int
	ready      []*Item[I]
	processing int
	busy       map[string][]*Item[I] // by each key with an item that has begun: those that wait for it
	waiting    int                   // items in busy
	resting    rests[I]
	awaiting   int
}

// New returns an empty Order that wants a number of items to be ready, 1 or more.
func New[I any](ahead int) *Order[I] {
	return &Order[I]{ahead: ahead, busy: map[string][]*Item[I]{}}
}

// Room reports whether another item should be fetched: fewer are ready than are wanted, and fewer than MaxAside are set
// aside. Items that were fetched before can still be set aside by Rest and Await, so at most MaxAside items, those that
// are wanted, and one for each thread are set aside.
func (o *Order[I]) Room() bool {
	return len(o.ready) < o.ahead && o.Aside() < MaxAside
}

// Put adds the item that was fetched after all others.
func (o *Order[I]) Put(it *Item[I]) {
	if it.Key != "" {
		if later, busy := o.busy[it.Key]; busy {
			o.busy[it.Key] = append(later, it)
			o.waiting++
			return
		}
		o.busy[it.Key] = nil
	}
	o.ready = append(o.ready, it)
}

// Next returns the item that Take takes, nil if none is ready.
func (o *Order[I]) Next() *Item[I] {
	if len(o.ready) == 0 {
		return nil
	}
	return o.ready[0]
}

// Take takes the item of Next away to be processed. Done, Rest or Await follows for it.
func (o *Order[I]) Take() {
	o.ready[0] = nil
	o.ready = o.ready[1:]
	o.processing++
}

// Done ends an item that was processed: the next one of its key is ready.
func (o *Order[I]) Done(it *Item[I]) {
	o.processing--
	if it.Key == "" {
		return
	}
	later := o.busy[it.Key]
	if len(later) == 0 {
		delete(o.busy, it.Key)
		return
	}
	o.ready = append(o.ready, later[0])
	later[0] = nil
	o.busy[it.Key] = later[1:]
	o.waiting--
}

// Rest sets an item aside that was processed and is to be tried again at the time due. Until it is done no other item
// of its key is ready.
func (o *Order[I]) Rest(it *Item[I], due time.Time) {
	o.processing--
	it.Try++
	it.due = due
	heap.Push(&o.resting, it)
}

// Await sets an item aside that was processed, until Awaited. Until it is done no other item of its key is ready.
func (o *Order[I]) Await(*Item[I]) {
	o.processing--
	o.awaiting++
}

// Awaited ends the wait of an item, which counts as processed again. Done, Rest or Await follows for it.
func (o *Order[I]) Awaited(*Item[I]) {
	o.awaiting--
	o.processing++
}

// Due returns the time at which the first resting item is to be tried again, false if none rests.
func (o *Order[I]) Due() (time.Time, bool) {
	if len(o.resting) == 0 {
		return time.Time{}, false
	}
	return o.resting[0].due, true
}

// Wake makes the resting items ready that are due.
func (o *Order[I]) Wake(now time.Time) {
	for len(o.resting) > 0 && !o.resting[0].due.After(now) {
		o.ready = append(o.ready, heap.Pop(&o.resting).(*Item[I]))
	}
}

// Aside returns the number of items that are set aside.
func (o *Order[I]) Aside() int { return o.waiting + len(o.resting) + o.awaiting }

// Processing returns the number of items that were taken and have neither ended nor been set aside.
func (o *Order[I]) Processing() int { return o.processing }

// Ending reports whether every item has ended or is being processed.
func (o *Order[I]) Ending() bool { return len(o.ready) == 0 && o.Aside() == 0 }

// Empty reports whether every item has ended.
func (o *Order[I]) Empty() bool { return o.Ending() && o.processing == 0 }

// rests is a heap of items, the one that is due first at its top.
type rests[I any] []*Item[I]

// Len implements heap.Interface.
func (r rests[I]) Len() int { return len(r) }

// Less implements heap.Interface.
func (r rests[I]) Less(i, j int) bool {
	if r[i].due.Equal(r[j].due) {
		return r[i].Ordinal < r[j].Ordinal
	}
	return r[i].due.Before(r[j].due)
}

// Swap implements heap.Interface.
func (r rests[I]) Swap(i, j int) { r[i], r[j] = r[j], r[i] }

// Push implements heap.Interface.
func (r *rests[I]) Push(x any) { *r = append(*r, x.(*Item[I])) }

// Pop implements heap.Interface.
func (r *rests[I]) Pop() any {
	last := (*r)[len(*r)-1]
	(*r)[len(*r)-1] = nil
	*r = (*r)[:len(*r)-1]
	return last
}
