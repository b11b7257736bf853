package works_test

import (
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work/workledger"
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

// endIdle ends all workers but the work's own task without a bucket.
func (w *world) endIdle() {
	w.t.Helper()
	for _, is := range w.work().Workers() {
		if is.Active {
			w.start(is.ID, "n-x")
			w.complete(is.ID, command.Succeeded)
		}
	}
	w.rest()
}

func TestWork_WorkersThatEndWithoutABucketAreReplacedMoreAndMoreSlowly(t *testing.T) {
	w := inWork(t, 10, 1, task.Policy{}, func(p *events.WorkPartition) { p.Workers = 3 })
	for range 50 {
		w.endIdle()
	}
	if n := w.state.Len() - 1; n > 8 {
		t.Fatalf("%d workers at once", n)
	}
	before := w.state.Len()
	for range 600 {
		w.now += 1000
		w.rest()
		w.endIdle()
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
	if w.endIdle(); w.work().Active() != 2 {
		t.Errorf("%d workers are there after a bucket has ended, want 2", w.work().Active())
	}
}

func TestWork_WorkersOfALaterLifeThatEndWithoutABucketAreNotReplacedAtOnceEither(t *testing.T) {
	w := inWork(t, 10, 1, task.Policy{}, func(p *events.WorkPartition) { p.Workers = 3 })
	for range 600 {
		w.now += 1000
		w.rest()
		w.endIdle()
	}
	w.complete(parent, command.Released)
	w.operate(parent, task.Cancel)
	w.rest()
	w.operate(parent, task.Delete)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	w.plan("5f", part("all", 10, 3))
	w.begin(1)
	w.take(parent)
	w.rest()
	for range 50 {
		w.endIdle()
	}
	if n := len(w.work().Workers()); n == 0 || n > 8 {
		t.Errorf("%d workers at once", n)
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

// pushes makes a stream one to which messages are pushed.
func pushes(p *events.WorkPartition) { p.Form = events.FormPushed }

// loseOften loses the attempt of a stream n times, after it was let go on, and has another one begin at once.
func (w *world) loseOften(n int, goOn func()) {
	w.t.Helper()
	for i := range n {
		goOn()
		w.lose(w.task(parent).Node)
		is := w.task(parent)
		if is.Final() {
			w.t.Fatalf("loss %d ends the stream: %+v", i+1, is.Error)
		}
		if is.Due > w.now {
			w.t.Fatalf("after loss %d it waits for %d ms", i+1, is.Due-w.now)
		}
		w.again()
	}
}

// A pushed stream has no token. What it has acknowledged since it began shows that nothing which was there ends it.
func TestStream_LossesOfAPushedOneCountAnewWhenAllIsAcknowledgedThatWasThere(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]int64{"nothing is open": 0, "what is open came later": 7} {
		w := streamed(t, pushes)
		w.loseOften(20, func() {
			w.now += 2000
			var oldest time.Time
			if open > 0 {
				oldest = time.UnixMilli(int64(w.now) - 1000)
			}
			w.moveTo(w.record(parent), workledger.Move{Items: workledger.Counts{Done: 1}, Open: open, Oldest: oldest})
		})
		if tries := w.work().Worker(1); tries.Lost != 1 {
			t.Errorf("%s: %d losses count", name, tries.Lost)
		}
	}
}

// A message may end each attempt that it comes to, while others are acknowledged before it.
func TestStream_LossesOfAPushedOneCountWhileAMessageIsOpenThatWasThere(t *testing.T) {
	t.Parallel()
	w := streamed(t, pushes)
	since := time.UnixMilli(int64(w.now) - 1000)
	losses := 0
	for ; losses < 20 && !w.task(parent).Final(); losses++ {
		if losses > 0 {
			w.now = max(w.now, w.task(parent).Due)
			w.again()
		}
		w.now += 2000
		w.moveTo(w.record(parent), workledger.Move{Items: workledger.Counts{Done: 5}, Open: 1, Oldest: since})
		w.lose(w.task(parent).Node)
	}
	if is := w.task(parent); !is.Final() || is.Error.Code != events.CodeLost || losses != is.Kind.Policy.MaxLost {
		t.Errorf("after %d losses it is %s, %+v", losses, is.Status, is.Error)
	}
}

// A stream may have no change for days, and neither an end.
func TestStream_LossesCountAnewAfterAnAttemptOfAnHour(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	w.loseOften(20, func() { w.now += 3_600_000 })
	w.lose(w.task(parent).Node)
	if is := w.task(parent); is.Due <= w.now {
		t.Error("a second loss in a row is followed by no wait")
	}
}

func TestStream_FailuresCountAnewAfterAnAttemptOfAnHour(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	most := w.task(parent).Kind.Policy.MaxAttempts
	fail := func() *events.Error {
		w.complete(parent, command.Failed)
		if is := w.task(parent); is.Final() {
			return is.Error
		}
		w.again()
		return nil
	}
	for range 2 * most {
		w.now += 3_600_000
		if err := fail(); err != nil {
			t.Fatalf("%+v", err)
		}
	}
	for range most - 2 {
		if err := fail(); err != nil {
			t.Fatalf("in a row: %+v", err)
		}
	}
	if err := fail(); err == nil {
		t.Errorf("%d failures in a row do not end it", most)
	}
}
