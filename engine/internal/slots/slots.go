// Package slots counts the slots of a node: how many attempts run and may run, which of them lend theirs, which are
// offered to other owners. It queues the owners that wait for a slot, and finds the one that comes first.
package slots

import (
	"sync"

	"taskledger/engine/internal/command"
)

// Slots counts the slots of one node. Fields, and methods whose names end with Locked, need the lock.
type Slots struct {
	sync.Mutex
	Max      int
	Used     int // by what runs or is about to, less what lends its slot; more than Max when that goes on
	Lent     int // by attempts that wait for other tasks
	Starting int // of those used, by what is about to run: its Started is being committed
	Draining bool
	Limits   map[string]*Limit // by behavior
	Freed    func()            // called when a slot is freed

	offered  int    // reserved by standing offers
	promised int    // reserved for offers that are about to be made
	started  uint64 // attempts that owners here have taken a slot for, ever
	queue    queue
}

// Limit bounds the attempts of a behavior, those that lend their slot included: what these wait for finds slots.
type Limit struct {
	Max, Used, offered int
	own                bool      // the behavior has one of its own
	heads              *headHeap // of the owners that wait with a task of the behavior
}

func (l *Limit) left() int { return l.Max - l.Used - l.offered }

// New returns so many free slots for the behaviors, some of which have limits.
func New(most int, behaviors []string, limits map[string]int) *Slots {
	x := &Slots{
		Max:    max(most, 0),
		Limits: map[string]*Limit{},
		Freed:  func() {},
		queue:  queue{waiting: map[Waiter]*place{}},
	}
	for _, id := range behaviors {
		n, limited := limits[id]
		if !limited {
			n = x.Max
		}
		l := &Limit{Max: n, own: limited}
		l.heads = &headHeap{limit: l}
		x.Limits[id] = l
		x.queue.heaps = append(x.queue.heaps, l.heads)
	}
	return x
}

// Runs reports whether this node could ever run the behavior.
func (x *Slots) Runs(behavior string) bool {
	x.Lock()
	defer x.Unlock()
	l := x.Limits[behavior]
	return l != nil && l.Max > 0 && x.Max > 0 && !x.Draining
}

// Free reports whether there is a slot for the behavior right now.
func (x *Slots) Free(behavior string) bool {
	x.Lock()
	defer x.Unlock()
	return x.freeLocked(behavior)
}

func (x *Slots) freeLocked(behavior string) bool {
	l := x.Limits[behavior]
	return l != nil && l.left() > 0 && x.anyFreeLocked()
}

// anyFreeLocked reports whether there is a slot for a behavior that has not reached its limit.
func (x *Slots) anyFreeLocked() bool { return !x.Draining && x.Used+x.offered+x.promised < x.Max }

// SetLimit bounds the attempts of a behavior from now on, below 0 by the number of slots alone. What runs above the
// limit goes on.
func (x *Slots) SetLimit(behavior string, most int) {
	x.Lock()
	defer x.Unlock()
	l := x.Limits[behavior]
	if l.Max, l.own = most, most >= 0; !l.own {
		l.Max = x.Max
	}
	x.wakeLocked()
}

// OwnLimits returns the limits of the behaviors that have one of their own; nil if none has.
func (x *Slots) OwnLimits() (limits map[string]int) {
	x.Lock()
	defer x.Unlock()
	for behavior, l := range x.Limits {
		if l.own {
			if limits == nil {
				limits = map[string]int{}
			}
			limits[behavior] = l.Max
		}
	}
	return limits
}

// Take takes a slot for a waiter's head, which Release gives back. It returns false when there is none, or another
// waiter comes first.
func (x *Slots) Take(w Waiter, h Head) bool {
	x.Lock()
	defer x.Unlock()
	if !x.freeLocked(h.Behavior) {
		return false
	}
	if first := x.firstLocked(x.queue.waiting[w]); first != nil && first.before(&h) {
		return false
	}
	x.Used++
	x.Starting++
	x.started++
	x.Limits[h.Behavior].Used++
	return true
}

// StartedHere returns how many slots the owners in this process have taken so far.
func (x *Slots) StartedHere() uint64 {
	x.Lock()
	defer x.Unlock()
	return x.started
}

// Release gives a slot back and wakes the owner that it is for.
func (x *Slots) Release(behavior string) {
	x.Lock()
	x.Used--
	x.Limits[behavior].Used--
	x.wakeLocked()
	freed := x.Freed
	x.Unlock()
	freed()
}

// Unused is the number of slots in which nothing runs, offered ones included.
func (x *Slots) Unused() int {
	x.Lock()
	defer x.Unlock()
	if x.Draining {
		return 0
	}
	return max(0, x.Max-x.Used)
}

// Unreserved returns the number of slots in which nothing runs and which are not offered. It is below zero when
// attempts that had lent their slots go on: so many must not be filled.
func (x *Slots) Unreserved() int {
	x.Lock()
	defer x.Unlock()
	if x.Draining {
		return 0
	}
	return x.Max - x.Used - x.offered
}

// Reserve sets slots aside for an offer, at most n, and returns how many of each behavior it may bring. A behavior
// with a limit is among them only if it is in the backlog: its few slots must not stand idle. Nothing is set aside
// for a backlog of which nothing may run; nil is none.
func (x *Slots) Reserve(n int, backlog map[string]int) (int, []command.OfferedBehavior) {
	x.Lock()
	defer x.Unlock()
	n = min(n, x.Max-x.Used-x.offered)
	if n <= 0 || x.Draining {
		return 0, nil
	}
	if backlog != nil && !x.couldRunLocked(backlog) {
		return 0, nil
	}
	detail := make([]command.OfferedBehavior, 0, len(x.Limits))
	for behavior, l := range x.Limits {
		most := min(n, l.left())
		if most <= 0 || l.Max < x.Max && backlog[behavior] == 0 {
			continue
		}
		l.offered += most
		detail = append(detail, command.OfferedBehavior{Behavior: behavior, Slots: most})
	}
	if len(detail) == 0 {
		return 0, nil
	}
	x.offered += n
	x.promised = max(0, x.promised-n)
	return n, detail
}

// couldRunLocked reports whether the limits leave a place to anything in the backlog.
func (x *Slots) couldRunLocked(backlog map[string]int) bool {
	for behavior, ready := range backlog {
		if l := x.Limits[behavior]; l != nil && ready > 0 && l.left() > 0 {
			return true
		}
	}
	return false
}

// Room counts how many more attempts of each limited behavior could run here if every slot were free.
type Room struct {
	Left    map[string]int
	Limited bool // a behavior has reached its limit: what waits for its end needs no slot
}

// Room returns how many more attempts of each limited behavior may start.
func (x *Slots) Room() Room {
	x.Lock()
	defer x.Unlock()
	r := Room{Left: make(map[string]int, len(x.Limits))}
	for behavior, l := range x.Limits {
		r.Left[behavior] = max(0, l.Max-l.Used)
		r.Limited = r.Limited || r.Left[behavior] == 0 && x.Used < x.Max
	}
	return r
}

// Of returns how many of the ready tasks could start.
func (r Room) Of(backlog map[string]int) (n int) {
	for behavior, ready := range backlog {
		n += min(ready, r.Left[behavior])
	}
	return n
}

// UsedUpByOffers returns the behaviors with ready tasks of which none can start because offers reserve what their
// limit leaves, and those of which offers reserve more than that.
func (x *Slots) UsedUpByOffers(ready map[string]int) map[string]int {
	x.Lock()
	defer x.Unlock()
	var scarce map[string]int
	for behavior, l := range x.Limits {
		if n := ready[behavior]; l.offered > 0 && (n > 0 && l.left() <= 0 || l.left() < 0) {
			if scarce == nil {
				scarce = map[string]int{}
			}
			scarce[behavior] = max(n, 1)
		}
	}
	return scarce
}

// Promise reserves the next n slots that become free for offers.
func (x *Slots) Promise(n int) {
	x.Lock()
	defer x.Unlock()
	fewer := n < x.promised
	x.promised = n
	if fewer {
		x.wakeLocked()
	}
}

// Unreserve ends what Reserve began: the slots of the assignments that it brought are taken, and the rest is free
// again.
func (x *Slots) Unreserve(n int, detail []command.OfferedBehavior, assigned []command.Assignment) {
	x.Lock()
	defer x.Unlock()
	x.offered -= n
	for _, b := range detail {
		x.Limits[b.Behavior].offered -= b.Slots
	}
	for i := range assigned {
		x.Used++
		x.Starting++
		x.Limits[assigned[i].Behavior].Used++
	}
	x.wakeLocked()
}

// LendLocked gives up the slot of an attempt that waits for other tasks. Without the lock its caller calls freed.
func (x *Slots) LendLocked() (freed func()) {
	x.Lent++
	x.Used--
	x.wakeLocked()
	return x.Freed
}

// TakeBackLocked ends a loan. It reports whether an offer would bring what must not start.
func (x *Slots) TakeBackLocked() (over bool) {
	x.Lent--
	x.Used++
	return x.offered > 0 && x.Used+x.offered > x.Max
}
