package works_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

// retried has the work's own attempt fail, so that its task waits for a retry.
func retried(w *world) {
	w.t.Helper()
	w.complete(parent, command.Failed, func(c *command.Complete) { c.Error = &events.Error{Code: "timeout"} })
	if p := w.task(parent); p.Phase() != projection.IsFailure || p.Final() {
		w.t.Fatalf("%s, final %t", p.Phase(), p.Final())
	}
}

func (w *world) wantFailed(code string) {
	w.t.Helper()
	p := w.task(parent)
	if !p.Final() || p.Error == nil || p.Error.Code != code || p.Runs != 1 {
		w.t.Errorf("final %t after %d runs, %+v, want the code %s", p.Final(), p.Runs, p.Error, code)
	}
	if len(w.open()) > 0 {
		w.t.Errorf("buckets %v are open", w.open())
	}
}

func TestWork_WhoseTaskWaitsForARetryFailsWithTheThreshold(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{MaxAttempts: 3}, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: "c", Limit: 1}}
	})
	retried(w)
	w.permit(worker(2), "c", 1, 2)
	w.wantFailed(events.CodeThreshold)
}

func TestWork_WhoseTaskWaitsForARetryFailsWithTheBucketThatCannotBeHad(t *testing.T) {
	w := inWork(t, 10, 3, task.Policy{MaxAttempts: 2})
	retried(w)
	w.complete(worker(2), command.Failed)
	w.end(worker(3), 3) // it gets bucket 1
	w.end(worker(3), 1) // and bucket 2
	w.complete(worker(3), command.Failed)
	w.wantFailed(events.CodeItems)
	if bucket := w.task(parent).Error.Properties["bucket"]; bucket != "2" {
		t.Errorf("bucket %q", bucket)
	}
}

func TestWork_WhoseTaskWaitsForARetryFailsWithALostWorker(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{MaxAttempts: 3, MaxLost: 1})
	retried(w)
	w.lose(w.task(worker(2)).Node)
	w.wantFailed(events.CodeLost)
}

func TestWork_ThatMayFailOnceSaysSo(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{MaxAttempts: 1})
	w.complete(worker(2), command.Failed)
	w.wantFailed(events.CodeItems)
	if is := w.task(parent).Error; !strings.HasSuffix(is.Message, "bucket 2 have failed once") {
		t.Errorf("%+v", is)
	}
}

func TestWork_WhoseAttemptsOnABucketExceedTheirTimeFailsWithThatAndTheBucket(t *testing.T) {
	w := inWork(t, 100, 2, task.Policy{MaxAttempts: 2})
	timedOut := func(c *command.Complete) {
		c.Error = &events.Error{Code: events.CodeTimeout, Message: "it took an hour"}
	}
	w.complete(worker(2), command.Failed, timedOut)
	w.now += 3_600_000
	w.start(worker(2), "n-2")
	w.take(worker(2))
	w.complete(worker(2), command.Failed, timedOut)
	w.wantFailed(events.CodeTimeout)
	is := w.task(parent).Error
	const want = "bucket 2 have failed 2 times, the last with timeout: it took an hour"
	if is.Properties["bucket"] != "2" || !strings.Contains(is.Message, want) {
		t.Errorf("%+v", is)
	}
}
