package engine

import "taskledger/engine/internal/command"

// slotLimit bounds the attempts of a behavior, those that lend their slot included: what these wait for finds slots.
type slotLimit struct{ max, used, offered int }

func (l *slotLimit) left() int { return l.max - l.used - l.offered }

// runs reports whether this node could ever run the behavior.
func (x *executor) runs(behavior string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.limits[behavior]
	return l != nil && l.max > 0 && x.slots > 0 && !x.draining
}

// free reports whether there is a slot for the behavior right now.
func (x *executor) free(behavior string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.freeLocked(behavior)
}

func (x *executor) freeLocked(behavior string) bool {
	l := x.limits[behavior]
	return l != nil && !x.draining && x.used+x.offered+x.promised < x.slots && l.left() > 0
}

// take takes a slot, which launch uses and release gives back, or untake.
func (x *executor) take(behavior string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.freeLocked(behavior) {
		return false
	}
	x.used++
	x.starting++
	x.started++
	x.limits[behavior].used++
	return true
}

// startedHere is how many slots the owners in this process have taken so far.
func (x *executor) startedHere() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.started
}

// untake gives back a slot for which there was no launch.
func (x *executor) untake(behavior string) {
	x.mu.Lock()
	x.starting--
	x.tellIdleLocked()
	x.mu.Unlock()
	x.release(behavior)
}

// release gives a slot back and wakes every owner that waits for one: the shards' heads compete for it again.
func (x *executor) release(behavior string) {
	x.mu.Lock()
	x.used--
	x.limits[behavior].used--
	woken := x.wakeLocked()
	freed := x.freed
	x.mu.Unlock()
	for i := range woken {
		i.wake.notify()
	}
	freed()
}

// slotsFreed counts how often slots became free.
func (x *executor) slotsFreed() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.freeings
}

// awaitSlot rings the inbox when slots become free, or now if some did since the owner began to look, at that count.
func (x *executor) awaitSlot(i *inbox, since uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.freeings != since {
		i.wake.notify()
		return
	}
	x.waiting[i] = struct{}{}
}

// unused is the number of slots in which nothing runs, offered ones included.
func (x *executor) unused() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.draining {
		return 0
	}
	return max(0, x.slots-x.used)
}

// unreserved is the number of slots in which nothing runs and which are not offered. It is below zero when attempts that had
// lent their slots go on: so many must not be filled.
func (x *executor) unreserved() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.draining {
		return 0
	}
	return x.slots - x.used - x.offered
}

// reserve sets slots aside for an offer, at most n, and says how many of each behavior it may bring. A behavior with a limit
// is among them only if it is in the backlog: its few slots must not stand idle. Nothing is set aside for a backlog of which
// nothing may run; nil is none.
func (x *executor) reserve(n int, backlog map[string]int) (int, []command.OfferedBehavior) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n = min(n, x.slots-x.used-x.offered)
	if n <= 0 || x.draining {
		return 0, nil
	}
	if backlog != nil && !x.couldRunLocked(backlog) {
		return 0, nil
	}
	detail := make([]command.OfferedBehavior, 0, len(x.limits))
	for behavior, l := range x.limits {
		most := min(n, l.left())
		if most <= 0 || l.max < x.slots && backlog[behavior] == 0 {
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
func (x *executor) couldRunLocked(backlog map[string]int) bool {
	for behavior, ready := range backlog {
		if l := x.limits[behavior]; l != nil && ready > 0 && l.left() > 0 {
			return true
		}
	}
	return false
}

// room is how many attempts of each behavior could run here beside those that do, if every slot were free.
type room struct {
	left    map[string]int
	limited bool // a behavior has reached its limit: what waits for its end needs no slot
}

func (x *executor) room() room {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := room{left: make(map[string]int, len(x.limits))}
	for behavior, l := range x.limits {
		r.left[behavior] = max(0, l.max-l.used)
		r.limited = r.limited || r.left[behavior] == 0 && x.used < x.slots
	}
	return r
}

// of is how many of the ready tasks could start.
func (r room) of(backlog map[string]int) (n int) {
	for behavior, ready := range backlog {
		n += min(ready, r.left[behavior])
	}
	return n
}

// usedUpByOffers returns the behaviors with ready tasks of which none can start because offers hold what their limit leaves.
func (x *executor) usedUpByOffers(ready map[string]int) map[string]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	var scarce map[string]int
	for behavior, n := range ready {
		if l := x.limits[behavior]; l != nil && n > 0 && l.offered > 0 && l.used+l.offered >= l.max {
			if scarce == nil {
				scarce = map[string]int{}
			}
			scarce[behavior] = n
		}
	}
	return scarce
}

// promise keeps the next n slots that become free for offers.
func (x *executor) promise(n int) {
	x.mu.Lock()
	fewer := n < x.promised
	x.promised = n
	var woken map[*inbox]struct{}
	if fewer {
		woken = x.wakeLocked()
	}
	x.mu.Unlock()
	for i := range woken {
		i.wake.notify()
	}
}

// unreserve ends what reserve began: the slots of the assignments that it brought are taken, and the owners here that
// wait for one are woken for the rest.
func (x *executor) unreserve(n int, detail []command.OfferedBehavior, given []command.Assignment) {
	x.mu.Lock()
	x.offered -= n
	for _, b := range detail {
		x.limits[b.Behavior].offered -= b.Slots
	}
	for i := range given {
		x.used++
		x.starting++
		x.limits[given[i].Behavior].used++
	}
	woken := x.wakeLocked()
	x.mu.Unlock()
	for i := range woken {
		i.wake.notify()
	}
}

// wakeLocked counts that slots became free and returns the inboxes to ring.
func (x *executor) wakeLocked() map[*inbox]struct{} {
	x.freeings++
	if len(x.waiting) == 0 {
		return nil
	}
	woken := x.waiting
	x.waiting = map[*inbox]struct{}{}
	return woken
}
