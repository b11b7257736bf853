package slots_test

import (
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/slots"
	"taskledger/events"
)

// owner is a waiter that counts how often it was woken.
type owner struct{ woken atomic.Int64 }

func (o *owner) Wake() { o.woken.Add(1) }

// wantWoken asserts how often an owner was woken since it was asked last.
func (o *owner) wantWoken(t *testing.T, n int64, when string) {
	t.Helper()
	if woken := o.woken.Swap(0); woken != n {
		t.Errorf("%s an owner was woken %d times, want %d", when, woken, n)
	}
}

// full are so many slots for the behaviors a and b, all taken.
func full(t *testing.T, n int, limits map[string]int) *slots.Slots {
	t.Helper()
	x := slots.New(n, []string{"a", "b"}, limits)
	for range n {
		if !x.Take(nil, slots.Head{Behavior: "a"}) {
			t.Fatal("no slot is free")
		}
	}
	return x
}

// await lets an owner look in vain, and wait.
func await(t *testing.T, x *slots.Slots, o *owner, h slots.Head) {
	t.Helper()
	if free(x, o, h) || x.Take(o, h) {
		t.Fatalf("%+v has found a slot", h)
	}
	x.Await(o, []slots.Head{h})
}

// free reports whether there is a slot for the head of an owner.
func free(x *slots.Slots, o *owner, h slots.Head) bool {
	return x.FreeFor(o, []slots.Head{h}, nil)[0]
}

func TestSlots_AFreeOneIsForTheFirstByPriorityThenReadyTimeThenCreation(t *testing.T) {
	for name, row := range map[string]struct{ first, then slots.Head }{
		"priority":   {slots.Head{Behavior: "a", Priority: 9, Due: 2, Created: 2}, slots.Head{Behavior: "a", Priority: 1, Due: 1, Created: 1}},
		"ready time": {slots.Head{Behavior: "a", Due: 1, Created: 2}, slots.Head{Behavior: "b", Due: 2, Created: 1}},
		"creation":   {slots.Head{Behavior: "b", Due: 1, Created: 1}, slots.Head{Behavior: "a", Due: 1, Created: 2}},
	} {
		synctest.Test(t, func(t *testing.T) {
			x, first, then := full(t, 1, nil), &owner{}, &owner{}
			await(t, x, then, row.then)
			await(t, x, first, row.first)
			x.Release("a")
			first.wantWoken(t, 1, "when a slot became free")
			then.wantWoken(t, 0, "when a slot became free")
			if free(x, then, row.then) || x.Take(then, row.then) {
				t.Fatalf("%s: the second has got the slot", name)
			}
			if !free(x, first, row.first) || !x.Take(first, row.first) {
				t.Fatalf("%s: the first has not got the slot", name)
			}
		})
	}
}

func TestSlots_EqualHeadsLetWhoComesFirst(t *testing.T) {
	x, one, other := full(t, 1, nil), &owner{}, &owner{}
	h := slots.Head{Behavior: "a", Due: 1}
	await(t, x, one, h)
	await(t, x, other, h)
	x.Release("a")
	if !x.Take(other, h) {
		t.Error("neither of two equal ones has got the slot")
	}
}

// The first finds that it needs no slot, or one for what comes later: who let it pass looks again at once.
func TestSlots_WhoLetAnotherPassIsWokenWhenThatDoesWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, doesWithout := range map[string]func(x *slots.Slots, o *owner){
			"left":         func(x *slots.Slots, o *owner) { x.Leave(o) },
			"waits behind": func(x *slots.Slots, o *owner) { x.Await(o, []slots.Head{{Behavior: "a", Priority: 0}}) },
		} {
			x, first, then := full(t, 1, nil), &owner{}, &owner{}
			h := slots.Head{Behavior: "a", Priority: 1}
			await(t, x, first, slots.Head{Behavior: "a", Priority: 9})
			await(t, x, then, h)
			x.Release("a")
			await(t, x, then, h) // it has looked
			first.wantWoken(t, 1, name)
			then.wantWoken(t, 0, name)
			doesWithout(x, first)
			first.wantWoken(t, 0, name)
			then.wantWoken(t, 1, name)
			if !x.Take(then, h) {
				t.Errorf("%s: the slot stays free", name)
			}
		}
	})
}

func TestSlots_WhoDoesNotComeIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, stuck, then := full(t, 1, nil), &owner{}, &owner{}
		h := slots.Head{Behavior: "a", Priority: 1}
		await(t, x, stuck, slots.Head{Behavior: "a", Priority: 9})
		await(t, x, then, h)
		x.Release("a")
		await(t, x, then, h)
		then.wantWoken(t, 0, "when a slot became free")
		time.Sleep(time.Second)
		synctest.Wait()
		if then.woken.Load() == 0 || !x.Take(then, h) {
			t.Errorf("after a second the other was woken %d times, and the slot stays free", then.woken.Load())
		}
	})
}

func TestSlots_WakeNobodyOnceTheyAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, stuck, then := full(t, 1, nil), &owner{}, &owner{}
		h := slots.Head{Behavior: "a", Priority: 1}
		await(t, x, stuck, slots.Head{Behavior: "a", Priority: 9})
		await(t, x, then, h)
		x.Release("a")
		await(t, x, then, h)
		then.wantWoken(t, 0, "when a slot became free")
		x.Close()
		await(t, x, then, h)
		time.Sleep(time.Second)
		synctest.Wait()
		then.wantWoken(t, 0, "after the end")
		x.Close()
	})
}

// A freed slot costs one turn of one owner, however many wait, and each of equal ones has its turn.
func TestSlots_AFreedOneWakesTheOwnerThatComesNextAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, all := full(t, 1, nil), make([]owner, 256)
		heads := make([]slots.Head, len(all))
		for i := range all {
			heads[i] = slots.Head{Behavior: "a", Due: events.Millis(len(all) - i/2)}
			await(t, x, &all[i], heads[i])
		}
		for n := range all {
			x.Release("a")
			next := len(all) - 2 - n/2*2 + n%2
			for i := range all {
				if woken := all[i].woken.Swap(0); (woken == 1) != (i == next) || woken > 1 {
					t.Fatalf("owner %d was woken %d times by slot %d, want owner %d alone", i, woken, n, next)
				}
			}
			if !x.Take(&all[next], heads[next]) {
				t.Fatalf("owner %d has got no slot", next)
			}
			x.Leave(&all[next])
		}
	})
}

// One that has looked and has more to do waits behind others of the same rank.
func TestSlots_EqualOnesTakeTurns(t *testing.T) {
	x, all, h := full(t, 1, nil), make([]owner, 3), slots.Head{Behavior: "a"}
	for i := range all {
		await(t, x, &all[i], h)
	}
	for n := range 9 {
		x.Release("a")
		next := &all[n%len(all)]
		next.wantWoken(t, 1, "when a slot became free")
		if !x.Take(next, h) {
			t.Fatal("no slot is free")
		}
		await(t, x, next, h)
	}
}

// Several slots become free at once: each owner that has taken one makes way for the next.
func TestSlots_EveryFreeOneIsTaken(t *testing.T) {
	x, all := full(t, 4, nil), make([]owner, 6)
	for i := range all {
		await(t, x, &all[i], slots.Head{Behavior: "a", Due: events.Millis(i)})
	}
	for range 4 {
		x.Release("a")
	}
	for i := range all {
		all[i].wantWoken(t, int64(min(1, max(0, 4-i))), "when four slots became free")
		if i >= 4 {
			continue
		}
		if !x.Take(&all[i], slots.Head{Behavior: "a", Due: events.Millis(i)}) {
			t.Fatalf("owner %d has got no slot", i)
		}
		x.Leave(&all[i])
	}
}

// Two whose behavior has reached its limit beside a free slot must not wake each other again and again.
func TestSlots_AHeadWithoutAPlaceNeitherHoldsNorWakesTheOthers(t *testing.T) {
	x, limited, other, free := full(t, 1, map[string]int{"a": 1}), &owner{}, &owner{}, &owner{}
	x.Lock()
	x.Max = 2
	x.Unlock()
	x.SetLimit("b", -1)
	high := slots.Head{Behavior: "a", Priority: 9}
	for range 3 {
		await(t, x, limited, high)
		await(t, x, other, high)
	}
	limited.wantWoken(t, 0, "beside a free slot")
	other.wantWoken(t, 0, "beside a free slot")
	if !x.Take(free, slots.Head{Behavior: "b"}) {
		t.Error("what has reached its limit holds a slot that another behavior may use")
	}
}

func TestSlots_LimitsChangeWhatStartsFromThenOn(t *testing.T) {
	x, o := full(t, 2, nil), &owner{}
	if got := x.OwnLimits(); got != nil {
		t.Errorf("limits %v, want none", got)
	}
	x.SetLimit("a", 1)
	x.Release("a")
	h := slots.Head{Behavior: "a"}
	await(t, x, o, h)
	if !free(x, o, slots.Head{Behavior: "b"}) {
		t.Error("the limit of one behavior holds for another")
	}
	x.SetLimit("a", 2)
	o.wantWoken(t, 1, "when the limit was raised")
	if !free(x, o, h) {
		t.Error("a raised limit lets nothing start")
	}
	x.SetLimit("a", 0)
	if free(x, o, h) || x.Runs("a") || !x.Runs("b") || !maps.Equal(x.OwnLimits(), map[string]int{"a": 0}) {
		t.Errorf("of limit 0 something may start, limits %v", x.OwnLimits())
	}
	x.SetLimit("a", -1)
	if !free(x, o, h) || x.OwnLimits() != nil {
		t.Errorf("without a limit nothing may start, limits %v", x.OwnLimits())
	}
}

// What an offer may bring follows a limit that was lowered since: it has to be closed.
func TestSlots_OffersAboveALoweredLimitAreScarce(t *testing.T) {
	x := slots.New(4, []string{"a", "b"}, nil)
	n, detail := x.Reserve(2, nil)
	if scarce := x.UsedUpByOffers(nil); n != 2 || scarce != nil {
		t.Fatalf("%d slots are offered, of %v too many", n, scarce)
	}
	x.SetLimit("a", 1)
	if scarce := x.UsedUpByOffers(nil); scarce["a"] == 0 || scarce["b"] != 0 {
		t.Errorf("of %v too many are offered, want of a", scarce)
	}
	x.Unreserve(n, detail, nil)
	if scarce := x.UsedUpByOffers(nil); scarce != nil {
		t.Errorf("of %v too many are offered, and nothing is", scarce)
	}
}
