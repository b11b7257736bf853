package taskstoretest

import (
	"errors"
	"time"

	"taskledger/taskstore"
)

func isOther(err error) bool { return errors.Is(err, taskstore.ErrOtherRequest) }

var times = []property{
	{"TimesAreAbsoluteOrCountedFromNow", func(b *bench) {
		future := taskstore.When(time.Now().Add(time.Hour).UnixMilli())
		made := b.update(taskstore.Update{Adds: []taskstore.Add{{Group: "g", At: 5}, {Group: "g", At: 0}, {Group: "g", At: -1_500}, {Group: "g", At: future}}})
		if made[0].At != 5 || made[2].At-made[1].At != 1_500 || taskstore.When(made[3].At) != future {
			b.Errorf("made %+v", made)
		}
		if free := b.list(taskstore.Page{Group: "g"}); len(free) != 2 {
			b.Errorf("%d are available, want what is of the past and of now", len(free))
		}
	}},
	{"WhatIsOfTheFutureIsNotClaimedBefore", func(b *bench) {
		it := b.update(taskstore.Update{Adds: []taskstore.Add{{Group: "g", At: -1_000}}})[0]
		if got := b.claim(b.other, "g", time.Minute, 0); got != nil {
			b.Fatalf("claimed %+v", got)
		}
		if got := b.claim(b.other, "g", time.Minute, 10*time.Second); got == nil || time.Now().UnixMilli() < int64(it.At) {
			b.Errorf("claimed %+v of %+v", got, it)
		}
	}},
	{"RenewalLeavesDataAndKeepsOthersOut", func(b *bench) {
		b.add("g", "data")
		it := b.claim(b.s, "g", time.Minute, 0)
		renewed := b.update(taskstore.Update{Changes: []taskstore.Change{keep(it.ID, -3_600_000)}})[0]
		if renewed.ID <= it.ID || renewed.At < it.At+3_000_000 || string(b.task(renewed.ID).Data) != "data" {
			b.Errorf("renewed %+v of %+v", renewed, it)
		}
		if got := b.claim(b.other, "g", time.Minute, 0); got != nil {
			b.Errorf("another one claimed %+v", got)
		}
		b.refused(b.s, taskstore.Update{Depends: []int64{it.ID}}, gone("depends", it.ID))
		b.refused(b.s, taskstore.Update{Changes: []taskstore.Change{keep(renewed.ID, 0), keep(it.ID, 0)}}, gone("updates", it.ID))
		released := b.update(taskstore.Update{Changes: []taskstore.Change{keep(renewed.ID, 0)}})[0]
		if got := b.claim(b.other, "g", time.Minute, 0); got == nil || got.ID != released.ID+1 {
			b.Errorf("after the release: %+v", got)
		}
	}},
	{"LateOwnerIsRefused", func(b *bench) {
		b.add("g", "data")
		late := b.claim(b.s, "g", 100*time.Millisecond, 0)
		now := b.claim(b.other, "g", time.Minute, 10*time.Second)
		if now == nil || now.ID <= late.ID || now.Owner != b.other.Client() {
			b.Fatalf("claimed %+v after %+v", now, late)
		}
		b.refused(b.s, taskstore.Update{Deletes: []int64{late.ID}}, gone("deletes", late.ID))
		b.refused(b.s, taskstore.Update{Changes: []taskstore.Change{keep(late.ID, 0)}}, gone("updates", late.ID))
		b.refused(b.s, taskstore.Update{Deletes: []int64{now.ID}}, heldBy("deletes", now.ID))
		b.updateBy(b.other, taskstore.Update{Deletes: []int64{now.ID}})
	}},
}
