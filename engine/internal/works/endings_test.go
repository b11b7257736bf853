package works_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/task"
)

func TestWork_AWorkerThatIsLostTooOftenFailsIt(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{MaxLost: 2})
	for range 2 {
		w.lose(w.task(worker(2)).Node)
		if w.task(worker(2)).Final() {
			break
		}
		w.now += 600_000
		w.rest()
		w.start(worker(2), "n-x")
		w.join(worker(2))
		if m := w.take(worker(2)); m.Bucket != 2 {
			t.Fatalf("%+v", m)
		}
	}
	if p := w.task(parent); !p.Final() || p.Error.Code != events.CodeLost {
		t.Errorf("final %t, %+v", p.Final(), p.Error)
	}
}

func TestWork_AWorkerThatIsRejectedFailsIt(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{})
	w.complete(worker(2), command.Failed, func(c *command.Complete) {
		c.ByPolicy, c.Error = false, &events.Error{Code: events.CodeRejected}
	})
	if p := w.task(parent); !p.Final() || p.Error.Code != events.CodeRejected {
		t.Errorf("final %t, %+v", p.Final(), p.Error)
	}
}

func TestReset_IsRefusedWhileAWorkerMayHaveReadThePlan(t *testing.T) {
	w := inWork(t, 3, 1, task.Policy{MaxAttempts: 2}, func(p *events.WorkPartition) { p.Workers = 2 })
	w.start(worker(2), "n-2")
	w.join(worker(2))
	w.complete(parent, command.Failed)
	if a := w.decide(&works.Reset{Task: string(parent), What: int64(events.ResetAll)}); a.Code != command.AnswerState {
		t.Errorf("%d %s", a.Code, a.Text)
	}
}
