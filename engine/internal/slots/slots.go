// Package slots counts the slots of a node: how many attempts run and may, which of them lend theirs, which are offered to other owners, and
// who waits for one.
package slots

import (
	"sync"

	"taskledger/engine/internal/command"
)

// Slots are those of one node. Who uses its fields, or a method whose name ends with Locked, holds the lock.
type Slots struct {
	sync.Mutex
	Max      int
	Used     int // by what runs or is about to, less what lends its slot; more than Max when that goes on
	Lent     int // by attempts that wait for other tasks
	Starting int // of those used, by what is about to run: its Started is being committed
	Draining bool
	Limits   map[string]*Limit // by behavior
	Freed    func()            // told when a slot is freed

	offered  int    // reserved by standing offers
	promised int    // kept for offers that are about to be made
	started  uint64 // attempts that owners here have taken a slot for, ever
	waiting  map[Waiter]struct{}
	freeings uint64 // how often slots became free
}

// Limit bounds the attempts of a behavior, those that lend their slot included: what these wait for finds slots.
type Limit struct{ Max, Used, offered int }

func (l *Limit) left() int { return l.Max - l.Used - l.offered }

// Waiter is an owner with a ready task and no slot.
type Waiter interface{ Wake() }

// New returns so many free slots for the behaviors, some of which have limits.
func New(most int, behaviors []string, limits map[string]int) *Slots {
	x := &Slots{Max: max(most, 0), Limits: map[string]*Limit{}, Freed: func() {}, waiting: map[Waiter]struct{}{}}
	for _, id := range behaviors {
		n, limited := limits[id]
		if !limited {
			n = x.Max
		}
		x.Limits[id] = &Limit{Max: n}
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
	return l != nil && !x.Draining && x.Used+x.offered+x.promised < x.Max && l.left() > 0
}

// Take takes a slot, which Release gives back.
func (x *Slots) Take(behavior string) bool {
	x.Lock()
	defer x.Unlock()
	if !x.freeLocked(behavior) {
		return false
	}
	x.Used++
	x.Starting++
	x.started++
	x.Limits[behavior].Used++
	return true
}

// StartedHere is how many slots the owners in this process have taken so far.
func (x *Slots) StartedHere() uint64 {
	x.Lock()
	defer x.Unlock()
	return x.started
}

// Release gives a slot back and wakes every owner that waits for one: the shards' heads compete for it again.
func (x *Slots) Release(behavior string) {
	x.Lock()
	x.Used--
	x.Limits[behavior].Used--
	woken := x.wakeLocked()
	freed := x.Freed
	x.Unlock()
	wake(woken)
	freed()
}

// Freeings counts how often slots became free.
func (x *Slots) Freeings() uint64 {
	x.Lock()
	defer x.Unlock()
	return x.freeings
}

// Await wakes a waiter when slots become free, or now if some did since the owner began to look, at that count.
func (x *Slots) Await(w Waiter, since uint64) {
	x.Lock()
	defer x.Unlock()
	if x.freeings != since {
		w.Wake()
		return
	}
	x.waiting[w] = struct{}{}
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

// Unreserved is the number of slots in which nothing runs and which are not offered. It is below zero when attempts that had
// lent their slots go on: so many must not be filled.
func (x *Slots) Unreserved() int {
	x.Lock()
	defer x.Unlock()
	if x.Draining {
		return 0
	}
	return x.Max - x.Used - x.offered
}

// Reserve sets slots aside for an offer, at most n, and says how many of each behavior it may bring. A behavior with a limit
// is among them only if it is in the backlog: its few slots must not stand idle. Nothing is set aside for a backlog of which
// nothing may run; nil is none.
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

// Room is how many attempts of each behavior could run here beside those that do, if every slot were free.
type Room struct {
	Left    map[string]int
	Limited bool // a behavior has reached its limit: what waits for its end needs no slot
}

// Room tells how many those are.
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

// Of is how many of the ready tasks could start.
func (r Room) Of(backlog map[string]int) (n int) {
	for behavior, ready := range backlog {
		n += min(ready, r.Left[behavior])
	}
	return n
}

// UsedUpByOffers returns the behaviors with ready tasks of which none can start because offers hold what their limit leaves.
func (x *Slots) UsedUpByOffers(ready map[string]int) map[string]int {
	x.Lock()
	defer x.Unlock()
	var scarce map[string]int
	for behavior, n := range ready {
		if l := x.Limits[behavior]; l != nil && n > 0 && l.offered > 0 && l.Used+l.offered >= l.Max {
			if scarce == nil {
				scarce = map[string]int{}
			}
			scarce[behavior] = n
		}
	}
	return scarce
}

// Promise keeps the next n slots that become free for offers.
func (x *Slots) Promise(n int) {
	x.Lock()
	fewer := n < x.promised
	x.promised = n
	var woken map[Waiter]struct{}
	if fewer {
		woken = x.wakeLocked()
	}
	x.Unlock()
	wake(woken)
}

// Unreserve ends what reserve began: the slots of the assignments that it brought are taken, and the owners here that
// wait for one are woken for the rest.
func (x *Slots) Unreserve(n int, detail []command.OfferedBehavior, given []command.Assignment) {
	x.Lock()
	x.offered -= n
	for _, b := range detail {
		x.Limits[b.Behavior].offered -= b.Slots
	}
	for i := range given {
		x.Used++
		x.Starting++
		x.Limits[given[i].Behavior].Used++
	}
	woken := x.wakeLocked()
	x.Unlock()
	wake(woken)
}

// wakeLocked counts that slots became free and returns whom to wake.
func (x *Slots) wakeLocked() map[Waiter]struct{} {
	x.freeings++
	if len(x.waiting) == 0 {
		return nil
	}
	woken := x.waiting
	x.waiting = map[Waiter]struct{}{}
	return woken
}

// LendLocked gives up the slot of an attempt that waits for other tasks. Without the lock its caller calls freed.
func (x *Slots) LendLocked() (freed func()) {
	x.Lent++
	x.Used--
	woken, told := x.wakeLocked(), x.Freed
	return func() {
		wake(woken)
		told()
	}
}

// TakeBackLocked ends a loan. It reports whether an offer would bring what must not start.
func (x *Slots) TakeBackLocked() (over bool) {
	x.Lent--
	x.Used++
	return x.offered > 0 && x.Used+x.offered > x.Max
}

func wake(woken map[Waiter]struct{}) {
	for w := range woken {
		w.Wake()
	}
}
