// Package inorder puts messages that are delivered at least once, in any order and with gaps, into the order of their
// places, and returns each of them once. It is pure.
//
// Deliveries are counted by the source. While each count follows the one before, nothing is missing, and first
// deliveries come in the order of their places. At a gap, and when it begins, a Queue hands out nothing until the state
// of the source shows that everything that was delivered and not acknowledged is here.
package inorder

import (
	"cmp"
	"slices"
)

// State tells what a source knows of its deliveries.
type State struct {
	Place   uint64 // highest one that was delivered
	Count   uint64 // of the last delivery
	Pending int    // messages that were delivered and not acknowledged
}

// Delivery is a message as it came.
type Delivery[T any] struct {
	Place uint64 // 1 or more
	Count uint64 // of the delivery, 1 or more
	Value T
}

// Outcome says what a delivery is.
type Outcome uint8

// The outcomes.
const (
	// Kept deliveries are handed out in their turn.
	Kept Outcome = iota
	// Held deliveries repeat a message that came before and is not acknowledged.
	Held
	// Acknowledged deliveries repeat a message that was acknowledged.
	Acknowledged
	// Late deliveries bring a message that was never handed out, or long ago, while later ones were. They are not kept:
	// only a queue that begins can hand them out.
	Late
)

// remembered is the least number of places that a queue remembers of those that it handed out.
const remembered = 8_192

// Queue holds the messages that came and are not acknowledged. The zero value is one that begins.
type Queue[T any] struct {
	known   bool     // the state of the source is known, and everything before it is here
	reached uint64   // nothing at a place up to here is missing
	count   uint64   // of the last delivery
	given   []uint64 // the last places that were handed out, in their order
	waiting []Delivery[T]
	open    map[uint64]Delivery[T] // what was handed out
	unsure  map[uint64]bool        // places that the source may have forgotten: they were acknowledged, or are gone
}

// Settled reports whether nothing is missing. Otherwise Settle has to be told the state of the source.
func (q *Queue[T]) Settled() bool { return q.known }

// Count returns Delivery.Count of the last delivery.
func (q *Queue[T]) Count() uint64 { return q.count }

// Unsettle has the queue wait for the state of the source, because deliveries may be missing.
func (q *Queue[T]) Unsettle() { q.known = false }

// Add takes a delivery.
func (q *Queue[T]) Add(d Delivery[T]) Outcome {
	counted := q.count
	q.count = max(q.count, d.Count)
	if d.Count > counted+1 {
		q.known = false
	}
	if _, ok := q.open[d.Place]; ok {
		q.open[d.Place] = d
		return Held
	}
	at, found := q.find(d.Place)
	if found {
		q.waiting[at] = d
		return Held
	}
	if d.Count <= counted { // the source has begun to count anew, which only its state tells
		q.known = false
	}
	if n := len(q.given); n > 0 && d.Place <= q.given[n-1] {
		if _, was := slices.BinarySearch(q.given, d.Place); was {
			return Acknowledged
		}
		return Late
	}
	q.waiting = slices.Insert(q.waiting, at, d)
	if q.known {
		q.reached = max(q.reached, d.Place)
	}
	return Kept
}

func (q *Queue[T]) find(place uint64) (int, bool) {
	return slices.BinarySearchFunc(q.waiting, place, func(d Delivery[T], place uint64) int {
		return cmp.Compare(d.Place, place)
	})
}

// Missing returns how many messages are not here that were delivered and not acknowledged, by the state of the source,
// which has to be asked while no acknowledgement is on its way. Less than 0: so many are here that the source does not
// wait for, and they may hide others that are missing. It takes each message for one that the source still has, unless
// Doubt has named it.
func (q *Queue[T]) Missing(s State) int {
	here := 0
	for place := range q.open {
		if place <= s.Place && !q.unsure[place] {
			here++
		}
	}
	for _, d := range q.waiting {
		if d.Place <= s.Place && !q.unsure[d.Place] {
			here++
		}
	}
	return s.Pending - here
}

// Settle returns what Missing does. With 0 the queue is settled.
func (q *Queue[T]) Settle(s State) (missing int) {
	if missing = q.Missing(s); missing != 0 {
		return missing
	}
	q.known = true
	q.reached = max(q.reached, s.Place)
	q.count = max(q.count, s.Count)
	for _, d := range q.waiting {
		q.reached = max(q.reached, d.Place)
	}
	return 0
}

// Next hands out the message with the lowest place, if the queue is settled.
func (q *Queue[T]) Next() (d Delivery[T], ok bool) {
	if !q.known || len(q.waiting) == 0 {
		return d, false
	}
	d = q.waiting[0]
	q.waiting = q.waiting[1:]
	if q.open == nil {
		q.open = map[uint64]Delivery[T]{}
	}
	q.open[d.Place] = d
	if len(q.given) == 2*remembered {
		q.given = q.given[:copy(q.given, q.given[remembered:])]
	}
	q.given = append(q.given, d.Place)
	return d, true
}

// Open returns the last delivery of a message that was handed out and is not acknowledged.
func (q *Queue[T]) Open(place uint64) (Delivery[T], bool) {
	d, ok := q.open[place]
	return d, ok
}

// Doubt has Settle not count a message that the source may have forgotten: its acknowledgement was sent and is not
// confirmed, or it is no longer there to be delivered again.
func (q *Queue[T]) Doubt(place uint64) {
	if q.unsure == nil {
		q.unsure = map[uint64]bool{}
	}
	q.unsure[place] = true
}

// Acknowledge forgets a message that was handed out, once the source has confirmed its acknowledgement.
func (q *Queue[T]) Acknowledge(place uint64) {
	delete(q.open, place)
	delete(q.unsure, place)
}

// Waiting returns what is here and was not handed out, in the order of places.
func (q *Queue[T]) Waiting() []Delivery[T] { return q.waiting }

// All returns everything that is here, in the order of places.
func (q *Queue[T]) All() []Delivery[T] {
	all := slices.Clone(q.waiting)
	for _, d := range q.open {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Delivery[T]) int { return cmp.Compare(a.Place, b.Place) })
	return all
}

// First returns the place before which everything is acknowledged. ok is false if it is unknown, because the queue was
// never settled.
func (q *Queue[T]) First() (place uint64, ok bool) {
	if !q.known && q.reached == 0 && len(q.given) == 0 {
		return 0, false
	}
	place = q.reached + 1
	for at := range q.open {
		place = min(place, at)
	}
	if len(q.waiting) > 0 {
		place = min(place, q.waiting[0].Place)
	}
	return place, true
}

// Restart tells at which place a source has to begin that has forgotten all deliveries, and prepares for what it
// delivers from there on. ok is false if that place is unknown.
func (q *Queue[T]) Restart() (place uint64, ok bool) {
	if place, ok = q.First(); !ok {
		return 0, false
	}
	q.known, q.count = true, 0
	q.waiting = slices.DeleteFunc(q.waiting, func(d Delivery[T]) bool {
		behind := d.Place > q.reached
		if behind {
			delete(q.unsure, d.Place)
		}
		return behind
	})
	return place, true
}
