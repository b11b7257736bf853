package works_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
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
