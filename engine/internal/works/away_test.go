package works_test

import (
	"slices"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/task"
)

// loseTwice loses a worker, and again once it has its next bucket, so that it waits.
func (w *world) loseTwice(id events.TaskID) {
	w.t.Helper()
	w.lose(w.task(id).Node)
	w.rest()
	w.start(id, "n-x")
	w.join(id)
	w.take(id)
	w.lose("n-x")
	w.rest()
	if wait := w.task(id).Due - w.now; wait <= 1000 {
		w.t.Fatalf("%s waits for %d ms: nothing is shown", id, wait)
	}
}

func TestWork_ABucketOfAWorkerThatWaitsAfterLossesWakesTheWorksOwnTask(t *testing.T) {
	w := inWork(t, 3, 3, task.Policy{})
	w.end(parent, 1)
	w.complete(parent, command.Snoozed)
	w.loseTwice(worker(2))
	if got := w.ready(); !slices.Equal(got, []events.TaskID{parent}) {
		t.Errorf("bucket 2 is free, and %v may start", got)
	}
}

// Nobody else may begin the next partition.
func TestWork_ItsOwnTaskThatWaitsAfterLossesIsWokenOnceOthersHaveEndedThePartition(t *testing.T) {
	w := inWork(t, 2, 2, task.Policy{})
	w.lose("n-1")
	w.rest()
	w.start(parent, "n-x")
	w.plan("5f", part("all", 2, 2))
	w.take(parent)
	w.lose("n-x")
	w.rest()
	w.end(worker(2), 2)
	if m := w.take(worker(2)); m.Bucket != 1 {
		t.Fatalf("worker 2 has %+v", m)
	}
	if got := w.ready(); slices.Contains(got, parent) {
		t.Fatalf("a bucket is open, and %v may start", got)
	}
	w.end(worker(2), 1)
	w.rest()
	if got := w.ready(); !slices.Contains(got, parent) {
		t.Errorf("the partition has ended, and %v may start", got)
	}
}

// An attempt that finds no definition of the next partition is released, and would otherwise start again at once, and
// again.
func TestWork_ItsOwnTaskIsNotWokenFromAWaitThatItsAttemptAskedFor(t *testing.T) {
	for name, how := range map[string]command.Completion{"released": command.Released, "snoozed": command.Snoozed} {
		w := inWork(t, 2, 2, task.Policy{})
		w.lose("n-1")
		w.rest()
		w.start(parent, "n-x")
		w.plan("5f", part("all", 2, 2), part("next", 2, 2))
		w.end(worker(2), 2)
		w.take(worker(2))
		w.end(worker(2), 1)
		w.complete(parent, how, func(c *command.Complete) { c.Wait, c.Next = 5*time.Second, w.now+5000 })
		w.rest()
		if is := w.task(parent); is.Lost == 0 || is.Due <= w.now {
			t.Fatalf("%s: it has lost %d attempts and waits for %d ms: nothing is shown", name, is.Lost, is.Due-w.now)
		}
		if got := w.ready(); slices.Contains(got, parent) {
			t.Errorf("%s: %v may start", name, got)
		}
	}
}

// What kills its node while it plans, or begins a partition, waits as long as its losses say.
func TestWork_ItsOwnTaskThatIsLostBetweenPartitionsIsNotWoken(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	w.plan("5f", part("all", 2, 2))
	w.lose("n-1")
	w.rest()
	w.start(parent, "n-2")
	w.lose("n-2")
	w.rest()
	if got := w.ready(); len(got) > 0 {
		t.Errorf("%v may start %d ms early", got, w.task(parent).Due-w.now)
	}
}

func TestWork_ABucketOfAWorkerThatWaitsAfterLossesGoesToAFurtherOneUpToTwiceAsManyAsThePlanHas(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{MaxLost: 100})
	for n := uint32(2); n <= 3; n++ {
		w.loseTwice(worker(n))
		next := worker(n + 1)
		if got := w.ready(); !slices.Equal(got, []events.TaskID{next}) {
			t.Fatalf("bucket 2 is free, and %v may start, want %s", got, next)
		}
		w.start(next, "n-y")
		if w.join(next); w.take(next).Bucket != 2 {
			t.Fatalf("%v are open", w.open())
		}
	}
	w.loseTwice(worker(4))
	if got := w.ready(); len(got) > 0 {
		t.Fatalf("%v may start, and three others wait", got)
	}
	w.now += 3_600_000
	w.rest()
	for _, id := range w.ready() {
		w.start(id, "n-z")
		w.join(id)
		w.take(id)
	}
	if len(w.open()) != 2 {
		t.Errorf("%v are open, want two", w.open())
	}
}

func TestWork_ABucketOfAWorkerThatHasFailedWaitsForTheBackoffOfThePolicy(t *testing.T) {
	w := inWork(t, 2, 2, task.Policy{})
	w.complete(worker(2), command.Failed, func(c *command.Complete) { c.Random = 1<<32 - 1 })
	w.rest()
	if w.work().Active() != 1 || len(w.ready()) > 0 {
		t.Errorf("%d workers, %v may start", w.work().Active(), w.ready())
	}
}
