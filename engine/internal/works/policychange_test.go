package works_test

import (
	"slices"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/task"
)

// The terms of the last submit count: one that joins may allow fewer attempts than a bucket has cost by then.
func TestWork_ASubmitThatAllowsFewerAttemptsFailsItByTheBucketThatHasCostMore(t *testing.T) {
	for name, row := range map[string]struct {
		cost func(w *world)
		code string
		less task.Policy
	}{
		"failures": {func(w *world) { w.complete(worker(2), command.Failed) }, events.CodeItems, task.Policy{MaxAttempts: 2, MaxLost: 5}},
		"losses":   {func(w *world) { w.lose("n-2") }, events.CodeLost, task.Policy{MaxAttempts: 5, MaxLost: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := inWork(t, 10, 2, task.Policy{MaxAttempts: 5, MaxLost: 5})
			for range 2 {
				row.cost(w)
				w.now += 3_600_000
				w.rest()
				if !slices.Contains(w.running(), worker(2)) {
					w.start(worker(2), "n-2")
					w.join(worker(2))
					w.take(worker(2))
				}
			}
			w.submit(row.less)
			w.rest()
			is := w.task(parent)
			if is.Status != task.Failure || is.Error.Code != row.code || is.Error.Properties["bucket"] != "2" {
				t.Fatalf("the work is %s with %+v", is.Status, is.Error)
			}
			if !slices.Contains(w.stopped, parent) || !w.task(worker(2)).Cancelled {
				t.Errorf("%v are stopped, and the worker is %+v", w.stopped, w.task(worker(2)))
			}
		})
	}
}

// An attempt whose parameters cannot be read waits for them, and not for workers: nobody wakes it before its time.
func TestWork_AShortSnoozeOfItsOwnTaskIsNotWokenForABucketThatIsFree(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{})
	w.complete(parent, command.Snoozed, func(c *command.Complete) { c.Wait = 5 * time.Second })
	w.rest()
	if due := w.task(parent).Due; due != w.now+5000 {
		t.Errorf("it is due after %d ms, want 5000", due-w.now)
	}
	if w.work().Asleep {
		t.Error("it waits for its workers")
	}
}
