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
	"taskledger/store"
	"taskledger/task"
)

var errNoLuck = errors.New("no luck")

func isUnavailable(err error) bool { return errors.Is(err, store.ErrUnavailable) }

// awaitExplained waits until the engine gives a reason for a task not running, and returns it.
func awaitExplained(t *testing.T, c *engine.Client, id events.TaskID, why task.Reason) (last engine.Explanation) {
	t.Helper()
	testcluster.Await(t, "task "+string(id)+" explained by "+string(why), func() bool {
		e, err := c.Explain(within(t, soon), id)
		last = e
		return err == nil && e.Why == why
	})
	if last.Text == "" || last.Task != id {
		t.Errorf("explanation %+v is incomplete", last)
	}
	return last
}

// ok fails the test when an operator's command was refused.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantStateError asserts that a command was refused because of the task's state.
func wantStateError(t *testing.T, id events.TaskID, err error) {
	t.Helper()
	if e, is := errors.AsType[*task.StateError](err); !is || e.Task != id || e.Problem == "" {
		t.Errorf("got %v, want a StateError of task %s", err, id)
	}
}

func inAnHour() task.SubmitOptions {
	return task.SubmitOptions{NotBefore: time.Now().Add(time.Hour)}
}

func TestCancel_WaitingTaskIsFinalAtOnce(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		f := w.submitWith(t, n, "x", inAnHour())
		ok(t, client.Operations().Cancel(within(t, soon), "x", "not needed"))
		e := wantFailure(t, f, events.CodeCancelled)
		if !errors.Is(e, task.ErrCancelled) || e.Message != "not needed" {
			t.Errorf("error %+v, want ErrCancelled with the reason", e)
		}
		wantStateError(t, "x", n.Operations().Cancel(within(t, soon), "x", ""))
		w.nothing(t)
	})
}

func TestCancel_RunningTaskEndsAsCancelled(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		a := c.StartNode("a", noSlots)
		c.StartNode("b", noShards, w.on("b"))
		f := w.submit(t, a, "x")
		r := w.next(t)
		ok(t, a.Operations().Cancel(within(t, soon), "x", "not needed"))
		select {
		case <-r.ctx.Done():
		case <-time.After(soon):
			t.Fatal("the attempt was not told")
		}
		wantFailure(t, f, events.CodeCancelled)
		w.nothing(t)
	})
}

func TestCancel_SuccessThatComesFirstCounts(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		stubborn := behaviors.Define("stubborn", &behaviors.Rules[string, string]{TaskID: idFromParams,
			AfterSuccess: func(_, _ string, now time.Time) time.Time { return now }})
		started, end := make(chan struct{}, 10), make(chan struct{})
		n := c.StartNode("a", nil, stubborn.Bind(func(context.Context, string) (string, error) {
			started <- struct{}{}
			<-end
			return "done", nil
		}))
		f, err := stubborn.Submit(within(t, soon), n, "x")
		ok(t, err)
		<-started
		ok(t, n.Operations().Cancel(within(t, soon), "x", ""))
		ok(t, n.Operations().Cancel(within(t, soon), "x", "")) // again is no error
		pending(t, f)
		close(end)
		want(t, f, "done")
		task := awaitTask(t, n, "x", "has ended", func(got task.Task) bool { return got.Status == task.Success })
		if !task.Final() || len(started) > 0 {
			t.Errorf("task %+v: want no repetition after a cancel", task)
		}
	})
}

func TestCancel_RecurringTaskLosesItsNextRun(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams,
			AfterSuccess: func(_, _ string, now time.Time) time.Time { return now.Add(time.Hour) }})
		n := c.StartNode("a", nil, w.on("a"))
		first := w.submit(t, n, "x")
		w.next(t).succeed("1")
		want(t, first, "1")
		waiting := w.submitWith(t, n, "x", inAnHour())
		pending(t, waiting)
		ok(t, n.Operations().Cancel(within(t, soon), "x", ""))
		wantFailure(t, waiting, events.CodeCancelled)
		got := awaitTask(t, n, "x", "is final", func(task task.Task) bool { return task.Final() })
		if got.Status != task.Success {
			t.Errorf("status %s, want that of its last run", got.Status)
		}
	})
}

// The failure stays. The run that was promised after it ends with it.
func TestCancel_FailedTaskLosesTheRunThatWasPromised(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: task.Policy{Existing: events.RunAgain, MaxAttempts: 1}})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		first := w.submit(t, n, "x")
		w.next(t).fail(errNoLuck)
		wantFailure(t, first, events.CodeFailed)
		here, elsewhere := w.submitWith(t, n, "x", inAnHour()), w.submitWith(t, client, "x", inAnHour())
		pending(t, here)
		pending(t, elsewhere)
		ok(t, client.Operations().Cancel(within(t, soon), "x", ""))
		wantFailure(t, here, events.CodeFailed)
		wantFailure(t, elsewhere, events.CodeFailed)
	})
}

func TestSuspend_KeepsATaskFromStartingUntilResume(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		f := w.submitWith(t, n, "x", inAnHour())
		ok(t, n.Operations().Suspend(within(t, soon), "x", ""))
		ok(t, n.Operations().Suspend(within(t, soon), "x", ""))
		ok(t, n.Operations().RunNow(within(t, soon), "x"))
		w.nothing(t)
		awaitExplained(t, n.Client, "x", task.WhySuspended)
		ok(t, n.Operations().Resume(within(t, soon), "x"))
		w.next(t).succeed("done")
		want(t, f, "done")
		wantStateError(t, "x", n.Operations().Suspend(within(t, soon), "x", ""))
	})
}

func TestSuspend_RunningAttemptGoesOnButIsNotRetried(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		f := w.submit(t, n, "x")
		r := w.next(t)
		ok(t, n.Operations().Suspend(within(t, soon), "x", ""))
		if r.ctx.Err() != nil {
			t.Error("the running attempt was ended")
		}
		r.fail(behaviors.RetryAfter(0, errNoLuck))
		w.nothing(t)
		ok(t, n.Operations().Resume(within(t, soon), "x"))
		w.next(t).succeed("done")
		want(t, f, "done")
	})
}

func TestRunNow_MakesAWaitingTaskDue(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		f := w.submitWith(t, n, "x", inAnHour())
		ok(t, n.Operations().RunNow(within(t, soon), "x"))
		r := w.next(t)
		wantStateError(t, "x", n.Operations().RunNow(within(t, soon), "x"))
		wantStateError(t, "x", second(n.Operations().Retry(within(t, soon), "x")))
		wantStateError(t, "x", n.Operations().Delete(within(t, soon), "x"))
		r.succeed("done")
		want(t, f, "done")
		wantStateError(t, "x", n.Operations().RunNow(within(t, soon), "x"))
	})
}

func TestDelete_ThenSubmitIsANewLife(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		first := w.submit(t, n, "x")
		old := w.next(t)
		old.succeed("1")
		want(t, first, "1")
		ok(t, n.Operations().Delete(within(t, soon), "x"))
		if _, err := n.Get(within(t, soon), "x"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("get of a deleted task: %v, want ErrNotFound", err)
		}
		if err := n.Operations().Delete(within(t, soon), "x"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("second delete: %v, want ErrNotFound", err)
		}
		again := w.submit(t, n, "x")
		if again.Joined() {
			t.Error("the submit after a delete has joined")
		}
		r := w.next(t)
		if r.attempt.Number != 1 || r.attempt.Token.Ref <= old.attempt.Token.Ref {
			t.Errorf("attempt %d with token %s after %s: want a first one with a later token", r.attempt.Number, r.attempt.Token, old.attempt.Token)
		}
		r.succeed("2")
		want(t, again, "2")
		if kinds := fmt.Sprint(history(t, n.Client, "x")); kinds != "[Created Started Succeeded]" {
			t.Errorf("history %s, want that of the present life", kinds)
		}
	})
}

func TestDelete_OfAWaitingTaskResolvesItsFutures(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		here, away := w.submitWith(t, n, "x", inAnHour()), w.submitWith(t, client, "x", inAnHour())
		pending(t, here)
		pending(t, away)
		ok(t, n.Operations().Delete(within(t, soon), "x"))
		for _, f := range []*behaviors.Future[string]{here, away} {
			if _, err := f.Wait(within(t, soon)); !errors.Is(err, task.ErrNotFound) {
				t.Errorf("future of a deleted task: %v, want ErrNotFound", err)
			}
		}
	})
}

func TestPause_KeepsABehaviorFromStartingInTheWholeCluster(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w, other := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams}), defineWork("other", nil)
		c.StartNodes(nil, func(name string) []task.Behavior { return []task.Behavior{w.on(name), other.on(name)} }, "a", "b")
		client := c.StartClient("operator", nil)
		ok(t, client.Operations().Pause(within(t, soon), "work", ""))
		ok(t, client.Operations().Pause(within(t, soon), "work", ""))
		var futures []*behaviors.Future[string]
		for i := range 2 * c.Shards() {
			id := fmt.Sprint("x", i)
			w.submitWith(t, client, id, inAnHour())
			awaitExplained(t, client.Client, events.TaskID(id), task.WhyPaused)
			futures = append(futures, w.submit(t, client, id))
		}
		w.nothing(t)
		unpaused := other.submit(t, client, "y")
		other.next(t).succeed("done")
		want(t, unpaused, "done")
		ok(t, client.Operations().Unpause(within(t, soon), "work"))
		for range futures {
			w.next(t).succeed("done")
		}
		for _, f := range futures {
			want(t, f, "done")
		}
	})
}

func TestExplain_SaysWhyATaskDoesNotRun(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w, unknown := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams}), defineWork("unknown", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Slots = 1 }, w.on("a"))
		client := c.StartClient("operator", nil)
		explained := func(id events.TaskID, why task.Reason) { awaitExplained(t, client.Client, id, why) }

		f := w.submit(t, client, "running")
		r := w.next(t)
		explained("running", task.WhyRunning)
		w.submit(t, client, "waiting")
		explained("waiting", task.WhyWaiting)
		w.submitWith(t, client, "scheduled", inAnHour())
		explained("scheduled", task.WhyScheduled)
		ok(t, client.Operations().Suspend(within(t, soon), "scheduled", ""))
		explained("scheduled", task.WhySuspended)
		unknown.submit(t, client, "homeless")
		explained("homeless", task.WhyNoNode)
		r.succeed("done")
		want(t, f, "done")
		explained("running", task.WhyFinished)
		w.next(t).succeed("done")
		if _, err := client.Explain(within(t, soon), "never-submitted"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("explanation of no task: %v, want ErrNotFound", err)
		}
		n.Stop()
		explained("homeless", task.WhyNoOwner)
	})
}

func TestOperate_OnNoTaskIsNotFound(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		n := c.StartNode("a", nil)
		ctx := within(t, soon)
		for name, err := range map[string]error{
			"cancel":  n.Operations().Cancel(ctx, "none", ""),
			"run now": n.Operations().RunNow(ctx, "none"),
			"retry":   second(n.Operations().Retry(ctx, "none")),
			"suspend": n.Operations().Suspend(ctx, "none", ""),
			"resume":  n.Operations().Resume(ctx, "none"),
			"delete":  n.Operations().Delete(ctx, "none"),
			"get":     second(n.Get(ctx, "none")),
			"linear":  second(n.GetLinear(ctx, "none")),
		} {
			if !errors.Is(err, task.ErrNotFound) {
				t.Errorf("%s: %v, want ErrNotFound", name, err)
			}
		}
	})
}
