package works_test

import (
	"errors"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work/segmentation"
	"taskledger/work/workledger"
)

// planOf is a plan of one partition of numbers, cut into so many buckets for two workers.
func planOf(definition string, buckets int64) workledger.Plan {
	return workledger.Plan{Definition: definition, Partitions: []workledger.PartitionPlan{{
		ID:           "all",
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: 100, Buckets: buckets},
		Buckets:      buckets,
		Workers:      2,
		Threads:      1,
	}}}
}

// resetBesideAWorker is a work that was suspended, reset and resumed, whose worker has started before the work's own
// task, and has opened the run that was reset.
func resetBesideAWorker(t *testing.T) (w *world, of *works.Ledger, opened workledger.Opened) {
	t.Helper()
	w = newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	l := w.ledger(parent)
	if _, err := l.Open(t.Context(), planOf("5f", 10)); err != nil {
		t.Fatal(err)
	}
	w.begin(1)
	w.take(parent)
	w.rest()
	w.start(worker(2), "n-2")
	w.take(worker(2))
	w.operate(parent, task.Suspend)
	for _, id := range w.running() {
		w.complete(id, command.Released)
	}
	w.rest()
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetAll)})
	w.operate(parent, task.Resume)
	w.rest()
	w.now += 10_000
	w.rest()
	w.start(worker(2), "n-2")
	of = w.ledger(worker(2))
	opened, err := of.Open(t.Context(), workledger.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	return w, of, opened
}

func TestReset_AWorkerThatHasReadTheRunBeforeItGetsNoBucketOfTheNextOne(t *testing.T) {
	w, of, opened := resetBesideAWorker(t)
	w.start(parent, "n-1")
	l := w.ledger(parent)
	next, err := l.Open(t.Context(), planOf("60", 5))
	if err != nil || next.Run == opened.Run {
		t.Fatalf("run %d after run %d: %v", next.Run, opened.Run, err)
	}
	if err := l.Begin(t.Context(), workledger.Beginning{}); err != nil {
		t.Fatal(err)
	}
	if a, err := of.Next(t.Context(), workledger.Report{}); !errors.Is(err, workledger.ErrOver) {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := l.Next(t.Context(), workledger.Report{}); err != nil || a.Bucket != 1 {
		t.Errorf("the work's own task: %+v, %v", a, err)
	}
}

func TestReset_AWorkerIsOverBeforeTheNextRunIsPlanned(t *testing.T) {
	_, of, _ := resetBesideAWorker(t)
	if a, err := of.Next(t.Context(), workledger.Report{}); err != nil || a.State != workledger.Finished {
		t.Errorf("%+v, %v", a, err)
	}
}
