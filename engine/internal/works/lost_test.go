package works_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/task"
)

func TestWork_ABucketThatKillsItsProcessCostsAsManyLossesAsThePolicyAllowsWhoeverHasIt(t *testing.T) {
	w := inWork(t, 40, 9, task.Policy{MaxLost: 3})
	losses := 0
	for ; !w.task(parent).Final() && losses < 10; losses++ {
		has := uint32(0)
		for number, bucket := range w.open() {
			if bucket == 1 {
				has = number
			}
		}
		if has == 0 { // another one takes it
			has = w.work().Open()[0].Worker
			if m := w.end(worker(has), w.work().Has(has).Bucket); m.Bucket != 1 {
				t.Fatalf("%+v", m)
			}
		}
		w.lose(w.task(worker(has)).Node)
	}
	if losses != 3 {
		t.Errorf("bucket 1 was lost %d times, want 3", losses)
	}
	w.wantFailed(events.CodeLost)
	if bucket := w.task(parent).Error.Properties["bucket"]; bucket != "1" {
		t.Errorf("bucket %q", bucket)
	}
}

func TestWork_LossesOfABucketCountAnewWhenItEnds(t *testing.T) {
	w := inWork(t, 40, 1, task.Policy{MaxLost: 2}, func(p *events.WorkPartition) { p.Workers = 3 })
	for n := uint32(2); n <= 3; n++ {
		w.start(worker(n), "n-x")
		w.join(worker(n))
		w.take(worker(n))
	}
	w.lose("n-x") // buckets 2 and 3, once each
	for bucket := uint64(1); bucket <= 3; bucket++ {
		w.end(parent, bucket)
	}
	if bucket, lost := w.work().MostLost(); lost != 0 {
		t.Errorf("bucket %d counts %d losses after its end", bucket, lost)
	}
}

// A loss fails the work's own task, which the same node runs and which would be lost next.
func TestWork_ThatFailsWithANodeIsNotLostWithIt(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{MaxLost: 1})
	w.complete(parent, command.Released)
	w.now += 1000
	w.start(parent, w.task(worker(2)).Node)
	w.lose(w.task(worker(2)).Node)
	w.wantFailed(events.CodeLost)
}

func TestWork_WorkersThatEndWithoutABucketAreReplacedMoreAndMoreSlowly(t *testing.T) {
	w := inWork(t, 10, 1, task.Policy{}, func(p *events.WorkPartition) { p.Workers = 3 })
	ends := func() (ended int) {
		for _, is := range w.work().Workers() {
			if is.Active {
				w.start(is.ID, "n-x")
				w.complete(is.ID, command.Succeeded)
				ended++
			}
		}
		w.rest()
		return ended
	}
	for range 50 {
		ends()
	}
	if n := w.state.Len() - 1; n > 8 {
		t.Fatalf("%d workers at once", n)
	}
	before := w.state.Len()
	for range 600 {
		w.now += 1000
		w.rest()
		ends()
	}
	switch n := w.state.Len() - before; {
	case n == 0:
		t.Error("no further worker is ever created")
	case n > 50:
		t.Errorf("%d workers in ten minutes", n)
	}
	w.now += 100_000
	w.rest()
	w.end(parent, 1)
	if ends(); w.work().Active() != 2 {
		t.Errorf("%d workers are there after a bucket has ended, want 2", w.work().Active())
	}
}

func TestWork_LossesOfAWorkerCountAnewWhenAnotherOneEndsABucket(t *testing.T) {
	w := inWork(t, 1000, 2, task.Policy{MaxLost: 3})
	mine := uint64(1)
	for n := range 5 {
		w.lose(w.task(worker(2)).Node)
		if p := w.task(parent); p.Final() {
			t.Fatalf("loss %d ends the work: %+v", n+1, p.Error)
		}
		for range 5 { // the bucket of the lost one is among them
			mine = w.end(parent, mine).Bucket
		}
		w.now += 3_600_000
		w.rest()
		w.start(worker(2), "n-2")
		w.take(worker(2))
	}
}

func TestWork_LossesOfItsOwnTaskCountAnewWhenAWorkerEndsABucket(t *testing.T) {
	w := inWork(t, 1000, 2, task.Policy{MaxLost: 3})
	theirs := uint64(2)
	for n := range 5 {
		w.lose(w.task(parent).Node)
		if p := w.task(parent); p.Final() {
			t.Fatalf("loss %d ends the work: %+v", n+1, p.Error)
		}
		for range 3 {
			theirs = w.end(worker(2), theirs).Bucket
		}
		w.now += 3_600_000
		w.rest()
		w.start(parent, "n-1")
		w.take(parent)
	}
}

// Another one does each bucket with which an attempt of the work's own task has failed.
func TestWork_FailuresOfItsOwnTaskWithBucketsThatAreDoneByOthersDoNotEndIt(t *testing.T) {
	w := inWork(t, 1000, 2, task.Policy{MaxAttempts: 3})
	theirs := uint64(2)
	for n := range 6 {
		bucket := w.open()[1]
		w.complete(parent, command.Failed, func(c *command.Complete) { c.Error = &events.Error{Code: events.CodeItems} })
		if p := w.task(parent); p.Final() {
			t.Fatalf("failure %d ends the work: %+v, bucket %d was tried %d times", n+1, p.Error, bucket, w.work().Tried(bucket))
		}
		for w.work().Tried(bucket) > 0 {
			theirs = w.end(worker(2), theirs).Bucket
		}
		w.now += 3_600_000
		w.rest()
		w.start(parent, "n-1")
		w.take(parent)
	}
}

func TestWork_WorkersThatFailForGoodWithoutABucketAreReplacedMoreAndMoreSlowly(t *testing.T) {
	w := inWork(t, 10, 1, task.Policy{MaxAttempts: 1}, func(p *events.WorkPartition) { p.Workers = 3 })
	for range 50 {
		for _, is := range w.work().Workers() {
			if is.Active {
				w.start(is.ID, "n-x")
				w.complete(is.ID, command.Failed)
			}
		}
		w.rest()
	}
	if n := w.state.Len() - 1; n > 8 || w.task(parent).Final() {
		t.Errorf("%d workers at once, the work has ended: %t", n, w.task(parent).Final())
	}
}

func TestWork_WorkersThatAreCancelledOneByOneAreReplacedAtOnce(t *testing.T) {
	w := inWork(t, 10, 1, task.Policy{}, func(p *events.WorkPartition) { p.Workers = 2 })
	for n := uint32(2); n < 20; n++ {
		if w.rest(); w.task(worker(n)) == nil {
			t.Fatalf("there is no worker %d", n)
		}
		w.operate(worker(n), task.Cancel)
	}
}
