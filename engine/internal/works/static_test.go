package works_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/task"
)

// The tests of this file follow midPoint's TestBucketingStatic by its numbers: here the work's own task is a worker,
// the owner of the shard does what the scavenger did, and a bucket is released by the end of its attempt.

// TestBucketingStatic 200.
func TestStatic200_ABucketIsGivenWithTheWorkerAndTheAttemptThatHasIt(t *testing.T) {
	w := inWork(t, 4, 2, task.Policy{})
	has := w.work().Has(2)
	if has == nil || has.Bucket != 2 || has.Attempt != w.task(worker(2)).Started || has.Since != w.now {
		t.Errorf("worker 2 has %+v", has)
	}
}

// TestBucketingStatic 140.
func TestStatic140_ABucketIsAskedForTwiceAndDoneOnce(t *testing.T) {
	w := inWork(t, 2, 1, task.Policy{}, func(p *events.WorkPartition) { p.Workers = 2 })
	entries := len(w.entries)
	if m := w.take(parent); works.State(m.State) != works.Go || m.Bucket != 1 || len(w.entries) != entries {
		t.Errorf("asked again: %+v, %d entries more", m, len(w.entries)-entries)
	}
	if m := w.end(parent, 1); m.Bucket != 2 {
		t.Errorf("after bucket 1: %+v", m)
	}
	if p, _ := w.work().Part(); p.Done != 1 {
		t.Errorf("%d buckets are done, want 1", p.Done)
	}
}

// TestBucketingStatic 220.
func TestStatic220_AnotherWorkerCannotEndABucketAndItsOwnStillCan(t *testing.T) {
	w := inWork(t, 4, 3, task.Policy{})
	for _, foreign := range []works.Bucket{{Ended: 2, Done: 1}, {Returned: 2}, {Ended: 2, Done: 1, Want: true}} {
		before := w.state.Digest(nil)
		foreign.Task, foreign.Started, foreign.Node = w.attempt(worker(3))
		if a := w.decide(&foreign); a.Code != command.AnswerStale || w.state.Digest(nil) != before {
			t.Errorf("%+v is answered %d %s", foreign, a.Code, a.Text)
		}
	}
	w.wantOpen(map[uint32]uint64{1: 1, 2: 2, 3: 3})
	if m := w.end(worker(2), 2); m.Bucket != 4 {
		t.Errorf("the worker that has it: %+v", m)
	}
	if p, _ := w.work().Part(); p.Done != 1 || p.Items.Done != 1 {
		t.Errorf("%d buckets of %d items are done, want one of one", p.Done, p.Items.Done)
	}
}

// TestBucketingStatic 210: five buckets of five workers, of which the fifth has none at first.
func TestStatic210_FiveWorkersTakeReleaseAndEndFiveBuckets(t *testing.T) {
	w := inWork(t, 5, 4, task.Policy{}, func(p *events.WorkPartition) { p.Workers = 5 })
	w.wantOpen(map[uint32]uint64{1: 1, 2: 2, 3: 3, 4: 4})
	if m := w.take(worker(2)); m.Bucket != 2 {
		t.Fatalf("asked for a second time: %+v", m)
	}
	w.move(worker(2), works.Bucket{Ended: 2})
	w.move(parent, works.Bucket{Ended: 1})
	if p, _ := w.work().Part(); p.Done != 2 || !w.work().IsDone(1) || !w.work().IsDone(2) || w.work().IsDone(3) {
		t.Fatalf("%d buckets are done, want 1 and 2", p.Done)
	}
	if m := w.take(parent); m.Bucket != 5 {
		t.Fatalf("the next one: %+v", m)
	}
	w.rest()
	w.start(worker(5), "n-5")
	w.join(worker(5))
	if m := w.take(worker(5)); works.State(m.State) != works.Wait || m.Bucket != 0 {
		t.Fatalf("all buckets are taken: %+v", m)
	}
	w.complete(worker(4), command.Released)
	if free, least := w.work().Free(); free != 1 || least != 4 {
		t.Fatalf("%d buckets are free from %d on, want bucket 4", free, least)
	}
	if m := w.take(worker(5)); m.Bucket != 4 {
		t.Fatalf("the one that was released: %+v", m)
	}
	w.move(parent, works.Bucket{Ended: 5})
	w.operate(worker(5), task.Cancel)
	w.complete(worker(5), command.Failed)
	w.wantOpen(map[uint32]uint64{3: 3})
	if m := w.take(parent); m.Bucket != 4 {
		t.Fatalf("that of a worker that was closed: %+v", m)
	}
	if m := w.move(parent, works.Bucket{Ended: 4}); works.State(m.State) != works.Wait {
		t.Fatalf("one bucket is left: %+v", m)
	}
	if m := w.move(worker(3), works.Bucket{Ended: 3}); works.State(m.State) != works.Over {
		t.Fatalf("the last bucket: %+v", m)
	}
}

func TestWork_OneEventABucketInSteadyStateWhateverTheNumberOfWorkers(t *testing.T) {
	for _, workers := range []uint32{1, 2, 9} {
		const buckets = 100
		w := inWork(t, buckets, workers, task.Policy{})
		before := len(w.told)
		ended := 0
		for is := w.work(); len(is.Open()) > 0; is = w.work() {
			o := is.Open()[ended%len(is.Open())]
			id := worker(o.Worker)
			if o.Worker == 1 {
				id = parent
			}
			w.end(id, o.Bucket)
			ended++
			if steady := ended + int(workers); steady <= buckets && len(w.told)-before != ended {
				t.Fatalf("%d workers: %d events of %d buckets", workers, len(w.told)-before, ended)
			}
		}
		w.rest()
		moves, ends := 0, 0
		for _, ev := range w.told {
			switch ev.Kind() {
			case events.KindBucketsMoved:
				moves++
			case events.KindPartitionEnded:
				ends++
			}
		}
		if moves != buckets+int(workers) || ends != 1 || ended != buckets {
			t.Errorf("%d workers: %d events of %d buckets, want one a bucket and one a worker", workers, moves, ended)
		}
	}
}
