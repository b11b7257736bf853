package works_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/task"
)

func TestOperate_SuspendOfOneWorkerIsRefusedAndNamesItsWork(t *testing.T) {
	w := inWork(t, 10, 3, task.Policy{})
	refused := func(do task.Operation) {
		t.Helper()
		a := w.decide(&command.Operate{Task: worker(2), Do: do})
		if a.Code != command.AnswerState || !strings.Contains(a.Text, "task "+string(parent)+": "+do.String()) {
			t.Errorf("%s: answer %d: %s", do, a.Code, a.Text)
		}
	}
	refused(task.Suspend)
	if w.task(worker(2)).Suspended {
		t.Error("the worker is suspended")
	}
	w.operate(worker(2), task.Resume) // it is so already
	w.operate(parent, task.Suspend)
	w.rest()
	w.operate(worker(2), task.Suspend)
	refused(task.Resume)
	w.operate(parent, task.Resume)
	w.rest()
	if w.task(worker(2)).Suspended {
		t.Error("the worker does not go on with its work")
	}
}

// Whoever is left by a full entry would be led by nobody, and suspended for ever.
func TestDelete_OfASuspendedWorkInAnEntryThatIsNearlyFullIsRefusedUntilItsWorkersHaveEnded(t *testing.T) {
	w := newWorld(t)
	w.budget = 1000
	w.submit(task.Policy{MaxAttempts: 3})
	w.start(parent, "n-1")
	w.plan("5f", part("all", 1000, 64))
	w.begin(1)
	w.take(parent)
	w.rest()
	for n := uint32(2); n <= 64; n++ {
		w.start(worker(n), "n-2")
		w.take(worker(n))
	}
	w.operate(parent, task.Suspend)
	w.rest()
	for n := uint32(2); n <= 64; n++ {
		w.complete(worker(n), command.Released)
	}
	w.complete(parent, command.Failed, func(c *command.Complete) { c.Error = &events.Error{Code: "timeout"} })
	w.another(0, part("all", 1, 1))
	note := strings.Repeat("x", 200)
	var a command.Answer
	w.turn(func(d *command.Decider) {
		for d.Entry.Size() < events.SealEntryBytes-600 {
			d.Emit(w.task("a/x0"), &events.Progressed{Done: 1, Note: note})
		}
		a = d.Decide(&command.Operate{Task: parent, Do: task.Delete})
	})
	if a.Code != command.AnswerState || !strings.Contains(a.Text, "delete it again") || w.task(parent) == nil {
		t.Fatalf("answer %d: %s", a.Code, a.Text)
	}
	w.rest()
	w.operate(parent, task.Delete)
	w.rest()
	for n := uint32(2); n <= 64; n++ {
		if is := w.task(worker(n)); is != nil && !is.Final() {
			t.Fatalf("worker %d goes on without its work, suspended %t", n, is.Suspended)
		}
	}
}
