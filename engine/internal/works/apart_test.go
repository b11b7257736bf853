package works_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/task"
)

func TestBeside_ANodeThatHasGivenAttemptsBackComesLastUntilItEndsABucket(t *testing.T) {
	w := inWork(t, 10, 1, task.Policy{})
	for range 6 {
		w.complete(parent, command.Released)
		w.now += 1000
		w.rest()
		w.start(parent, "n-1")
		w.take(parent)
	}
	w.complete(parent, command.Released)
	if by := w.Beside(w.task(parent)); by["n-1"] != 4 || by["n-2"] != 0 {
		t.Errorf("%v, want 4 of n-1", by)
	}
	w.now += 1000
	w.start(parent, "n-1")
	w.end(parent, w.take(parent).Bucket)
	if by := w.Beside(w.task(parent)); by["n-1"] != 1 {
		t.Errorf("%v after the end of a bucket, want the attempt that runs", by)
	}
	w.complete(parent, command.Released)
	w.turn(func(d *command.Decider) { d.Emit(w.task(parent), &events.Suspended{}) })
	w.operate(parent, task.Resume)
	if by := w.Beside(w.task(parent)); by["n-1"] != 0 {
		t.Errorf("%v after a suspension, want none", by)
	}
}

// The hints that end attempts may be lost.
func TestReconcile_NamesTheAttemptsOfAWorkThatIsSuspended(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{})
	over := func(id events.TaskID) bool {
		is := w.task(id)
		var a command.Answer
		w.turn(func(d *command.Decider) {
			d.OffersAnswered = func(string, uint64) {}
			a = d.Decide(&command.Reconcile{
				Node:     is.Node,
				Attempts: []command.AttemptName{{Task: id, Started: is.Started}},
			})
		})
		names, err := command.DecodeNames(a.Data)
		if err != nil {
			t.Fatal(err)
		}
		return len(names) > 0
	}
	both := []events.TaskID{parent, worker(2)}
	for _, id := range both {
		if over(id) {
			t.Errorf("%s is to end while the work goes on", id)
		}
	}
	w.operate(parent, task.Suspend)
	for _, id := range both {
		if !over(id) {
			t.Errorf("nobody tells the node of %s again that it is to end", id)
		}
	}
}
