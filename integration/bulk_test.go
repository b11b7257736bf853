package integration_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"taskledger/behaviors"
	"taskledger/bulk"
	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/projection"
	"taskledger/task"
)

// bulkTasks returns the number of tasks to retry; 50,000 take minutes.
func bulkTasks() int64 {
	if testkit.Whole() {
		return 50_000
	}
	return 5000
}

// The node that retries thousands of tasks that have failed, which fail again at once, is killed half way. Whoever goes
// on with the last cursor that it told retries the others, and none a second time.
func TestBulk_RetryResumedAfterAKillRetriesEachTaskOnce(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		testkit.Busy(t)
		tasks := bulkTasks()
		var operator atomic.Pointer[testcluster.Node]
		kill := sync.OnceFunc(func() { operator.Load().Kill() })
		var ran atomic.Int64
		fails := behaviors.Define("fails", &behaviors.Rules[string, string]{Policy: task.Policy{RetainCount: projection.MaxFinished}})
		c.StartNode("worker", nil, fails.Bind(func(context.Context, string) (string, error) {
			if ran.Add(1) == tasks*3/2 {
				kill()
			}
			return "", behaviors.Cancel(errors.New("never"))
		}))
		operator.Store(c.StartNode("operator", nil))
		client := c.StartClient("caller", nil)
		for range tasks / 1000 {
			for _, r := range fails.SubmitMany(within(t, soon), client.Client, make([]string, 1000), task.SubmitOptions{}) {
				ok(t, r.Err)
			}
		}
		failed := task.Filter{Status: task.Failure, Behavior: "fails"}
		awaitFailed(t, client.Client, tasks)

		var told bulk.Report // by an operator that has died since
		var died error
		for r, err := range operator.Load().Operations().Each(within(t, soon), failed, task.Retry, bulk.Options{}) {
			if died = err; err == nil {
				told = r
			}
			if r.Changed >= tasks*4/5 { // the tasks run later than they are retried
				kill()
			}
		}
		if died == nil || told.Cursor == "" {
			t.Fatalf("who retries them is killed, and ends with %v, %+v", died, told)
		}
		var r bulk.Report
		var err error
		for r, err = range client.Operations().Each(within(t, soon), failed, task.Retry, bulk.Options{Cursor: told.Cursor}) {
			ok(t, err)
		}
		if r.Failed > 0 || r.Refused > 0 || r.Changed == 0 || r.Changed == tasks || r.Cursor != "" {
			t.Errorf("who goes on ends with %+v", r)
		}
		awaitFailed(t, client.Client, tasks)
		for _, got := range pages(t, client.Client, task.Filter{Behavior: "fails", Limit: 1000}, func(task.Page) {}) {
			if got.Runs != 2 {
				t.Fatalf("task %s has %d runs, want 2", got.ID, got.Runs)
			}
		}
	})
}

// awaitFailed waits until so many tasks have failed, and none is left that has not.
func awaitFailed(t *testing.T, c *engine.Client, n int64) {
	t.Helper()
	testcluster.Await(t, "every task to fail", func() bool {
		counts, err := c.Counts(within(t, soon), "fails")
		return err == nil && len(counts.Missing) == 0 && len(counts.Rows) == 1 && counts.Rows[0].Status == task.Failure && counts.Rows[0].Tasks == n
	})
}

// What an operator has seen of a task may be over: what he asks for then is refused, and changes nothing.
func TestChange_OfATaskThatIsNoLongerAsItWasSeenIsRefused(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		f := w.submitWith(t, n.Client, "x", inAnHour())
		waiting, err := n.Get(within(t, soon), "x")
		ok(t, err)
		ok(t, n.Operations().Change(within(t, soon), &waiting, task.RunNow, ""))
		w.next(t).succeed("done")
		want(t, f, "done")
		ended, err := n.Get(within(t, soon), "x")
		ok(t, err)
		for op := range task.OperationCount {
			if state := new(*task.StateError); !errors.As(n.Operations().Change(within(t, soon), &waiting, op, ""), state) || !(*state).Changed {
				t.Errorf("%s of a task that waited: want it refused", op)
			}
		}
		if now, err := n.Get(within(t, soon), "x"); err != nil || now.Version != ended.Version {
			t.Errorf("the task has changed: %+v, %v", now, err)
		}
		ok(t, n.Operations().Change(within(t, soon), &ended, task.Delete, ""))
		w.submitWith(t, n.Client, "x", inAnHour())
		if state := new(*task.StateError); !errors.As(n.Operations().Change(within(t, soon), &ended, task.Delete, ""), state) {
			t.Error("what was seen is a life that is over: want it refused")
		}
	})
}
