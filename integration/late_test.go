package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

func TestFuture_LateOneIsAnsweredAfterTheTaskWasForgottenAndTheOwnerChanged(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: task.Policy{RetainCount: 2}})
		a := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		good, bad := w.submit(t, client, "same/good"), w.submit(t, client, "same/bad")
		later, laterBad := w.submit(t, client, "same/good"), w.submit(t, client, "same/bad")
		onNode := w.submit(t, a, "same/good")
		for range 2 {
			if r := w.next(t); r.params == "same/good" {
				r.succeed("done")
			} else {
				r.fail(behaviors.Cancel(behaviors.Code("broken", errNoLuck, nil)))
			}
		}
		for _, id := range []events.TaskID{"same/good", "same/bad"} {
			awaitTask(t, client, id, "has ended", func(task task.Task) bool { return task.Final() })
		}
		for i := range 2 { // of which the shard keeps no more
			f := w.submit(t, client, fmt.Sprint("same/later-", i))
			w.next(t).succeed("later")
			want(t, f, "later")
		}
		wantForgotten(t, client.Client, "same/good", task.Success)
		want(t, good, "done")
		want(t, onNode, "done")
		wantFailure(t, bad, "broken")
		b := c.StartNode("b", nil)
		a.Stop()
		want(t, later, "done")
		wantFailure(t, laterBad, "broken")
		again, err := w.Submit(within(t, soon), b, "same/good")
		if err != nil || again.Joined() {
			t.Errorf("submit of a forgotten id: joined %t, %v; want a new life", again.Joined(), err)
		}
		c.StartNode("c", nil, w.on("c"))
		w.next(t).succeed("anew")
		want(t, again, "anew")
	})
}

func TestFuture_LargeResultIsEqualHereThereAndLater(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		large := behaviors.Define[int, string]("large", nil)
		bound := large.Bind(func(_ context.Context, size int) (string, error) { return fmt.Sprintf("%0*d", size, 7), nil })
		a := c.StartNode("a", nil, bound)
		b := c.StartNode("b", noSlots)
		client := c.StartClient("caller", nil)
		for _, size := range []int{1, 2 << 10, 8 << 10, 200 << 10} {
			f, err := large.Submit(within(t, soon), client, size)
			ok(t, err)
			result := fmt.Sprintf("%0*d", size, 7)
			want(t, f, result)
			for _, m := range []behaviors.Client{a, b, client} {
				want(t, large.Attach(m, f.ID()), result)
			}
		}
	})
}

func TestFuture_OfAnEarlierRunGetsThatRunsOutcome(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: task.Policy{Existing: events.RunAgain, MaxAttempts: 1}})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		var futures []*behaviors.Future[string]
		for i := range 3 {
			futures = append(futures, w.submit(t, client, "x"))
			if i == 1 {
				w.next(t).fail(behaviors.Code("broken", errNoLuck, nil))
			} else {
				w.next(t).succeed(fmt.Sprint("run ", i+1))
			}
			awaitTask(t, n, "x", "has ended", func(task task.Task) bool { return task.Final() && int(task.Runs) == i+1 })
		}
		want(t, futures[0], "run 1")
		wantFailure(t, futures[1], "broken")
		want(t, futures[2], "run 3")
	})
}

// A retry was promised and then cancelled: the failure before it was the end of the run, for a future that comes when
// the task has run again, or is forgotten, as for any other.
func TestFuture_OfARunWhoseRetryWasCancelledGetsItsFailure(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		policy := task.Policy{Existing: events.RunAgain, MaxAttempts: 2, RetainCount: 1, Backoff: task.Backoff{Base: 24 * time.Hour, Max: 24 * time.Hour}}
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: policy})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		runs := func(id string, n int) {
			awaitTask(t, client, events.TaskID(id), "has ended", func(task task.Task) bool { return task.Final() && int(task.Runs) == n })
		}
		late, later := w.submit(t, client, "same/x"), w.submit(t, client, "same/x")
		w.next(t).fail(errNoLuck)
		awaitTask(t, client, "same/x", "has failed", func(got task.Task) bool { return got.Status == task.Failure && !got.Final() })
		ok(t, client.Operations().Cancel(within(t, soon), "same/x", "enough"))
		runs("same/x", 1)
		again := w.submit(t, client, "same/x")
		w.next(t).succeed("again")
		runs("same/x", 2)
		wantFailure(t, late, events.CodeFailed)
		want(t, again, "again")
		f := w.submit(t, n, "same/other") // the shard keeps one
		w.next(t).succeed("other")
		want(t, f, "other")
		wantForgotten(t, client.Client, "same/x", task.Success)
		wantFailure(t, later, events.CodeFailed)
	})
}

// wantForgotten asserts that no owner knows a task any more, and that get shows how it ended all the same.
func wantForgotten(t *testing.T, c *engine.Client, id events.TaskID, ended task.Status) {
	t.Helper()
	if _, err := c.GetLinear(within(t, soon), id); !errors.Is(err, task.ErrNotFound) {
		t.Fatalf("the owner: %v, want ErrNotFound: the task should have been forgotten", err)
	}
	if task, err := c.GetForgotten(within(t, soon), id); err != nil || !task.Forgotten || task.Status != ended {
		t.Errorf("get: %+v, %v; want it forgotten, and %s", task, err, ended)
	}
}
