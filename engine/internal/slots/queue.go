package slots

import (
	"container/heap"
	"sync"
	"time"

	"taskledger/events"
)

// reserveFor bounds the time for which a free slot is reserved for the owner whose head comes first, which may be
// writing an entry. An owner that takes longer, say because its journal cannot be written, lets the others pass
// until it comes.
const reserveFor = 250 * time.Millisecond

// Head is the first ready task of a behavior in a shard, by what it is compared with those of other shards.
type Head struct {
	Behavior     string
	Priority     int64
	Due, Created events.Millis
}

// before reports whether a starts before b when there is one slot for both. Of equal ones neither does.
func (a *Head) before(b *Head) bool {
	switch {
	case a.Priority != b.Priority:
		return a.Priority > b.Priority
	case a.Due != b.Due:
		return a.Due < b.Due
	}
	return a.Created < b.Created
}

// Waiter is the owner of a shard that needs slots. Wake must not block.
type Waiter interface{ Wake() }

// queue holds the owners that wait for slots. A freed slot wakes the one whose head comes first, and no other: the
// next one is woken when that has tried to take it. So a slot costs as many comparisons as there are behaviors,
// however many shards wait.
type queue struct {
	waiting map[Waiter]*place
	heaps   []*headHeap // one for each behavior
	waits   uint64      // how often an owner has begun to wait
	again   *time.Timer // passes over owners that were woken and do not come; nil: none was woken
	timers  sync.WaitGroup
	closed  bool
}

// place belongs to a waiter from the time it found no slot until it finds one.
type place struct {
	waiter Waiter
	order  uint64    // puts equal heads in the order in which their owners began to wait
	spots  []*spot   // empty while the waiter is passed over
	woken  time.Time // and has not come yet; zero = has not been woken
}

// spot is a head of a waiter in the heap of its behavior.
type spot struct {
	Head
	of *place
	in *headHeap
	at int
}

// headHeap is a heap of the heads of one behavior, the first one on top.
type headHeap struct {
	limit *Limit
	spots []*spot
}

func (l *headHeap) Len() int { return len(l.spots) }

func (l *headHeap) Less(i, j int) bool { return l.spots[i].first(l.spots[j]) }

func (l *headHeap) Swap(i, j int) {
	l.spots[i], l.spots[j] = l.spots[j], l.spots[i]
	l.spots[i].at, l.spots[j].at = i, j
}

func (l *headHeap) Push(s any) {
	l.spots = append(l.spots, s.(*spot))
	l.spots[len(l.spots)-1].at = len(l.spots) - 1
}

func (l *headHeap) Pop() any {
	last := len(l.spots) - 1
	s := l.spots[last]
	l.spots[last] = nil
	l.spots = l.spots[:last]
	return s
}

// first reports whether s is served before other. Of equal heads the one comes first whose owner has waited longer.
func (s *spot) first(other *spot) bool {
	return s.before(&other.Head) || !other.before(&s.Head) && s.of.order < other.of.order
}

// topBut returns the first spot of the heap that does not belong to p; nil if there is none.
func (l *headHeap) topBut(p *place) *spot {
	if len(l.spots) == 0 || l.spots[0].of != p {
		return l.top()
	}
	var second *spot // a waiter has one spot in a heap at most: the second one is a child of the top
	for _, s := range l.spots[1:min(3, len(l.spots))] {
		if second == nil || s.first(second) {
			second = s
		}
	}
	return second
}

func (l *headHeap) top() *spot {
	if len(l.spots) == 0 {
		return nil
	}
	return l.spots[0]
}

// FreeFor appends for each of a waiter's heads whether there is a slot for it that is reserved for no other waiter.
func (x *Slots) FreeFor(w Waiter, heads []Head, free []bool) []bool {
	x.Lock()
	defer x.Unlock()
	first := x.firstLocked(x.queue.waiting[w])
	for i := range heads {
		free = append(free, x.freeLocked(heads[i].Behavior) && (first == nil || !first.before(&heads[i])))
	}
	return free
}

// firstLocked returns the spot that a free slot is for, without those of a waiter; nil when no other waiter could use
// one.
func (x *Slots) firstLocked(but *place) (first *spot) {
	for _, l := range x.queue.heaps {
		if len(l.spots) == 0 || l.limit.left() <= 0 {
			continue
		}
		if s := l.topBut(but); s != nil && (first == nil || s.first(first)) {
			first = s
		}
	}
	return first
}

// Await lets a waiter wait with the heads for which it found no slot. It is woken when there is one for it.
func (x *Slots) Await(w Waiter, heads []Head) {
	x.Lock()
	defer x.Unlock()
	q := &x.queue
	p := q.waiting[w]
	if p == nil {
		p = &place{waiter: w}
		q.waiting[w] = p
	}
	x.standAside(p)
	q.waits++
	p.order, p.woken = q.waits, time.Time{}
	for _, h := range heads {
		if l := x.Limits[h.Behavior]; l != nil {
			s := &spot{Head: h, of: p, in: l.heads}
			p.spots = append(p.spots, s)
			heap.Push(l.heads, s)
		}
	}
	x.wakeLocked()
}

// standAside takes the heads of a waiter out of their heaps.
func (x *Slots) standAside(p *place) {
	for i, s := range p.spots {
		heap.Remove(s.in, s.at)
		p.spots[i] = nil
	}
	p.spots = p.spots[:0]
}

// Leave ends the wait of a waiter that needs no slot, or is over.
func (x *Slots) Leave(w Waiter) {
	x.Lock()
	defer x.Unlock()
	if p := x.queue.waiting[w]; p != nil {
		x.standAside(p)
		delete(x.queue.waiting, w)
		x.wakeLocked()
	}
}

// wakeLocked wakes the waiter that a free slot is for, unless it was woken already.
func (x *Slots) wakeLocked() {
	if len(x.queue.waiting) == 0 || !x.anyFreeLocked() {
		return
	}
	first := x.firstLocked(nil)
	if first == nil || !first.of.woken.IsZero() {
		return
	}
	first.of.woken = time.Now()
	first.of.waiter.Wake()
	if x.queue.again == nil && !x.queue.closed {
		x.passOverIn(reserveFor)
	}
}

func (x *Slots) passOverIn(d time.Duration) {
	x.queue.timers.Add(1)
	x.queue.again = time.AfterFunc(d, x.passOver)
}

// passOver lets the others pass the waiters that were woken and have not come for too long.
func (x *Slots) passOver() {
	defer x.queue.timers.Done()
	x.Lock()
	defer x.Unlock()
	x.queue.again = nil
	now, next := time.Now(), time.Duration(0)
	for _, p := range x.queue.waiting {
		if p.woken.IsZero() || len(p.spots) == 0 {
			continue
		}
		if left := reserveFor - now.Sub(p.woken); left <= 0 {
			x.standAside(p)
		} else if next == 0 || left < next {
			next = left
		}
	}
	if next > 0 && !x.queue.closed {
		x.passOverIn(next)
	}
	x.wakeLocked()
}

// Close stops the timers, and returns when nothing of the slots runs any more.
func (x *Slots) Close() {
	x.Lock()
	x.queue.closed = true
	if x.queue.again != nil && x.queue.again.Stop() {
		x.queue.timers.Done()
	}
	x.Unlock()
	x.queue.timers.Wait()
}
