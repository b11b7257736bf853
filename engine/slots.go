package engine

import (
	"maps"
	"slices"
)

type slotLimit struct{ max, used, offered int }

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
	return l != nil && !x.draining && x.used+x.offered < x.slots && l.used+l.offered < l.max
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
	x.limits[behavior].used++
	return true
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
		i.ring()
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
		i.ring()
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
	return x.slots - x.used
}

// reserve sets slots aside for an offer, at most n, and says how many of each behavior it may bring.
func (x *executor) reserve(n int) (int, []offeredBehavior) {
	return x.reserveOf(n, func(*slotLimit) bool { return true })
}

// reserveIdle is reserve for a shard that needs nothing now: it leaves out the behaviors with a limit, whose few slots
// must not stand idle.
func (x *executor) reserveIdle(n int) (int, []offeredBehavior) {
	return x.reserveOf(n, func(l *slotLimit) bool { return l.max >= x.slots })
}

func (x *executor) reserveOf(n int, may func(*slotLimit) bool) (int, []offeredBehavior) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n = min(n, x.slots-x.used-x.offered)
	if n <= 0 || x.draining {
		return 0, nil
	}
	detail := make([]offeredBehavior, 0, len(x.limits))
	for behavior, l := range x.limits {
		if most := min(n, l.max-l.used-l.offered); most > 0 && may(l) {
			if l.max < x.slots {
				l.offered += most
			}
			detail = append(detail, offeredBehavior{behavior, most})
		}
	}
	if len(detail) == 0 {
		return 0, nil
	}
	x.offered += n
	return n, detail
}

// startable returns the behaviors whose limit is not reached. The result must not be changed.
func (x *executor) startable() map[string]Behavior {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.behaviors
	for behavior, l := range x.limits {
		if l.max >= x.slots || l.used < l.max {
			continue
		}
		if len(all) == len(x.behaviors) {
			all = maps.Clone(all)
		}
		delete(all, behavior)
	}
	return all
}

// couldAdd reports whether there is a slot for a behavior that an offer leaves out.
func (x *executor) couldAdd(detail []offeredBehavior) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for behavior, l := range x.limits {
		offered := slices.ContainsFunc(detail, func(b offeredBehavior) bool { return b.Behavior == behavior })
		if !offered && l.used+l.offered < l.max {
			return true
		}
	}
	return false
}

// limited reports whether an offer holds slots of a behavior with a limit.
func (x *executor) limited(detail []offeredBehavior) bool {
	return slices.ContainsFunc(detail, func(b offeredBehavior) bool { return x.limits[b.Behavior].max < x.slots })
}

// unreserve ends what reserve began: the slots of the assignments that it brought are taken, and the owners here that
// wait for one are woken for the rest.
func (x *executor) unreserve(n int, detail []offeredBehavior, given []assignment) {
	x.mu.Lock()
	x.offered -= n
	for _, b := range detail {
		if l := x.limits[b.Behavior]; l.max < x.slots {
			l.offered -= b.Slots
		}
	}
	for i := range given {
		x.used++
		x.starting++
		x.limits[given[i].behavior].used++
	}
	woken := x.wakeLocked()
	x.mu.Unlock()
	for i := range woken {
		i.ring()
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

// wanted reports whether an owner here waits for a slot.
func (x *executor) wanted() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.waiting) > 0
}
