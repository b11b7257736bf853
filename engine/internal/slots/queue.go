package slots

import (
	"slices"
	"sync"
	"time"

	"taskledger/events"
)

// keepFor is how long a free slot is kept for the owner whose head comes first, while that is on its way: it may be writing an
// entry. An owner that takes longer, since its journal cannot be written, say, lets the others pass until it comes.
const keepFor = 250 * time.Millisecond

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

// Waiter is the owner of a shard that looks for slots. Wake must not block.
type Waiter interface{ Wake() }

// queue is who waits for slots.
type queue struct {
	waiting map[Waiter]*place
	again   *time.Timer    // lets those look again that let others pass; nil: none does
	timers  sync.WaitGroup // that have not fired, or whose function has not returned
	closed  bool
}

// place is that of a waiter: from the time it found no slot until it finds one.
type place struct {
	heads []Head
	woken time.Time // to look, and has not looked yet; zero = has not been woken
}

// onItsWay reports whether a slot that is free now is kept for the waiter: it does not know of it, or does not for long.
func (p *place) onItsWay(now time.Time) bool { return p.woken.IsZero() || now.Sub(p.woken) < keepFor }

// FreeFor reports whether there is a slot for the head of a waiter's line.
func (x *Slots) FreeFor(w Waiter, h Head) bool {
	x.Lock()
	defer x.Unlock()
	return x.freeForLocked(w, h)
}

// freeForLocked reports whether there is a slot that no other waiter comes first for. Who is not to have it looks again when that one
// has looked, or takes too long.
func (x *Slots) freeForLocked(w Waiter, h Head) bool {
	if !x.freeLocked(h.Behavior) {
		return false
	}
	if len(x.queue.waiting) == 0 {
		return true
	}
	if x.firstLocked(w, &h, time.Now()) {
		return true
	}
	if x.queue.again == nil && !x.queue.closed {
		x.queue.timers.Add(1)
		x.queue.again = time.AfterFunc(keepFor, x.lookAgain)
	}
	return false
}

// firstLocked reports whether a head of a waiter comes before the heads of all other waiters that were woken and have not looked yet.
func (x *Slots) firstLocked(w Waiter, h *Head, now time.Time) bool {
	for other, p := range x.queue.waiting {
		if other == w || !p.onItsWay(now) {
			continue
		}
		for i := range p.heads {
			if p.heads[i].before(h) && x.freeLocked(p.heads[i].Behavior) {
				return false
			}
		}
	}
	return true
}

// lookAgain wakes all who wait.
func (x *Slots) lookAgain() {
	defer x.queue.timers.Done()
	x.Lock()
	defer x.Unlock()
	x.queue.again = nil
	x.wakeLocked()
	for w := range x.queue.waiting {
		w.Wake()
	}
}

// Close lets nobody look again by the passing of time, and returns when nothing of the slots runs any more.
func (x *Slots) Close() {
	x.Lock()
	x.queue.closed = true
	if x.queue.again != nil && x.queue.again.Stop() {
		x.queue.timers.Done()
	}
	x.Unlock()
	x.queue.timers.Wait()
}

// Await lets a waiter that has looked wait with the heads for which it found no slot, or lets it look again if slots became free since it began
// to, at that count. It is woken when slots become free.
func (x *Slots) Await(w Waiter, since uint64, heads []Head) {
	x.Lock()
	defer x.Unlock()
	p := x.queue.waiting[w]
	if p == nil {
		p = &place{}
		x.queue.waiting[w] = p
	}
	p.heads, p.woken = append(p.heads[:0], heads...), time.Time{}
	if x.freeings != since {
		p.woken = time.Now()
		w.Wake()
	}
	x.passOnLocked(w)
}

// Leave ends the wait of a waiter that needs no slot, or is over.
func (x *Slots) Leave(w Waiter) {
	x.Lock()
	defer x.Unlock()
	if _, waits := x.queue.waiting[w]; waits {
		delete(x.queue.waiting, w)
		x.passOnLocked(w)
	}
}

// passOnLocked wakes those who let a waiter pass that has looked: for them there may be a slot now.
func (x *Slots) passOnLocked(by Waiter) {
	if x.Draining || x.Used+x.offered+x.promised >= x.Max {
		return
	}
	now := time.Now()
	for w, p := range x.queue.waiting {
		could := func(h Head) bool { return x.freeLocked(h.Behavior) && x.firstLocked(w, &h, now) }
		if w != by && p.woken.IsZero() && slices.ContainsFunc(p.heads, could) {
			p.woken = now
			w.Wake()
		}
	}
}

// wakeLocked counts that slots became free, and wakes all who wait and do not look already.
func (x *Slots) wakeLocked() {
	x.freeings++
	if len(x.queue.waiting) == 0 {
		return
	}
	now := time.Now()
	for w, p := range x.queue.waiting {
		if p.woken.IsZero() {
			p.woken = now
			w.Wake()
		}
	}
}
