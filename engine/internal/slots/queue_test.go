package slots_test

import (
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/slots"
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
	since := x.Freeings()
	if x.FreeFor(o, h) || x.Take(o, h) {
		t.Fatalf("%+v has found a slot", h)
	}
	x.Await(o, since, []slots.Head{h})
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
			then.wantWoken(t, 1, "when a slot became free")
			if x.FreeFor(then, row.then) || x.Take(then, row.then) {
				t.Fatalf("%s: the second has got the slot", name)
			}
			if !x.FreeFor(first, row.first) || !x.Take(first, row.first) {
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
			"waits behind": func(x *slots.Slots, o *owner) { x.Await(o, x.Freeings(), []slots.Head{{Behavior: "a", Priority: 0}}) },
		} {
			x, first, then := full(t, 1, nil), &owner{}, &owner{}
			h := slots.Head{Behavior: "a", Priority: 1}
			await(t, x, first, slots.Head{Behavior: "a", Priority: 9})
			await(t, x, then, h)
			x.Release("a")
			await(t, x, then, h) // it has looked
			first.wantWoken(t, 1, name)
			then.wantWoken(t, 1, name)
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
		then.wantWoken(t, 1, "when a slot became free")
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
		then.wantWoken(t, 1, "when a slot became free")
		x.Close()
		await(t, x, then, h)
		time.Sleep(time.Second)
		synctest.Wait()
		then.wantWoken(t, 0, "after the end")
		x.Close()
	})
}

// Of several that let one pass only those look again that nobody else comes before now.
func TestSlots_WhoComesNextIsWokenAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, all := full(t, 1, nil), make([]owner, 4)
		heads := make([]slots.Head, len(all))
		for i := range all {
			heads[i] = slots.Head{Behavior: "a", Priority: []int64{9, 5, 5, 1}[i]}
			await(t, x, &all[i], heads[i])
		}
		x.Release("a")
		for i := range all {
			all[i].wantWoken(t, 1, "when a slot became free")
			if i > 0 {
				await(t, x, &all[i], heads[i])
			}
		}
		x.Leave(&all[0])
		for i, n := range []int64{0, 1, 1, 0} {
			all[i].wantWoken(t, n, "when the first needed no slot")
		}
	})
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
	if !x.FreeFor(o, slots.Head{Behavior: "b"}) {
		t.Error("the limit of one behavior holds for another")
	}
	x.SetLimit("a", 2)
	o.wantWoken(t, 1, "when the limit was raised")
	if !x.FreeFor(o, h) {
		t.Error("a raised limit lets nothing start")
	}
	x.SetLimit("a", 0)
	if x.FreeFor(o, h) || x.Runs("a") || !x.Runs("b") || !maps.Equal(x.OwnLimits(), map[string]int{"a": 0}) {
		t.Errorf("of limit 0 something may start, limits %v", x.OwnLimits())
	}
	x.SetLimit("a", -1)
	if !x.FreeFor(o, h) || x.OwnLimits() != nil {
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
