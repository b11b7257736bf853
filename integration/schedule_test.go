package integration_test

import (
	"fmt"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// startedAt returns when each attempt of a task started.
func startedAt(t *testing.T, c *engine.Client, id events.TaskID) (at []time.Time) {
	t.Helper()
	for ev, err := range c.Ledger().History(within(t, soon), id) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ev.Body.(*events.Started); ok {
			at = append(at, ev.At.Time())
		}
	}
	return at
}

func TestDelay_TaskStartsNoEarlierThanItsTime(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		const delay = 4 * time.Second // an explanation on a busy machine comes within it
		w := defineWork("work", &behaviors.Rules[string, string]{Delay: func(string) time.Duration { return delay }})
		n := c.StartNode("a", nil, w.on("a"))
		began := time.Now().Truncate(time.Millisecond)
		f := w.submit(t, n, "x")
		awaitExplained(t, n.Client, f.ID(), task.WhyScheduled)
		w.next(t).succeed("done")
		want(t, f, "done")
		if at := startedAt(t, n.Client, f.ID()); at[0].Sub(began) < delay {
			t.Errorf("started %s after the submit, want at least %s", at[0].Sub(began), delay)
		}
	})
}

func TestDelay_SecondSubmitCanOnlyBringTheStartForward(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		first := w.submitWith(t, n, "x", task.SubmitOptions{NotBefore: time.Now().Add(time.Hour)})
		w.submitWith(t, n, "x", task.SubmitOptions{NotBefore: time.Now().Add(2 * time.Hour)})
		w.nothing(t)
		task := awaitTask(t, n, "x", "waits", func(got task.Task) bool { return got.Status == task.Created })
		if left := time.Until(task.Due().Time()); left > time.Hour {
			t.Errorf("due in %s, want at most an hour", left)
		}
		w.submit(t, n, "x")
		w.next(t).succeed("done")
		want(t, first, "done")
		w.nothing(t)
	})
}

func TestRetry_FutureStaysPendingUntilTheRetrySucceeds(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		first, second := w.submit(t, n, "x"), w.submit(t, client, "x")
		w.next(t).fail(behaviors.RetryAfter(time.Second, errNoLuck))
		pending(t, first)
		task := awaitTask(t, n, "x", "failed", func(got task.Task) bool { return got.Status == task.Failure })
		if task.Final() || task.Error == nil || task.Error.Message != "no luck" {
			t.Errorf("task %+v: want a failure that will be retried", task)
		}
		third := w.submit(t, n, "x")
		r := w.next(t)
		if r.attempt.Number != 2 || r.attempt.Failures != 1 {
			t.Errorf("attempt %d after %d failures, want 2 after 1", r.attempt.Number, r.attempt.Failures)
		}
		r.succeed("done")
		for _, f := range []*behaviors.Future[string]{first, second, third} {
			want(t, f, "done")
		}
		if at := startedAt(t, n.Client, "x"); at[1].Sub(at[0]) < time.Second {
			t.Errorf("retried after %s, want at least 1s", at[1].Sub(at[0]))
		}
	})
}

func TestRetry_BackoffOfThePolicyEndsWithTheBudget(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams,
			Policy: task.Policy{MaxAttempts: 3, Backoff: task.Backoff{Base: 50 * time.Millisecond, Max: 100 * time.Millisecond}}})
		n := c.StartNode("a", nil, w.on("a"))
		f := w.submit(t, n, "x")
		for i := range 3 {
			r := w.next(t)
			if r.attempt.Number != i+1 || r.attempt.Failures != i {
				t.Errorf("attempt %d after %d failures, want %d after %d", r.attempt.Number, r.attempt.Failures, i+1, i)
			}
			r.fail(fmt.Errorf("failure %d", i+1))
		}
		if e := wantFailure(t, f, events.CodeFailed); e.Attempt != 3 || e.Message != "failure 3" {
			t.Errorf("error %+v, want that of attempt 3", e)
		}
		w.nothing(t)
	})
}

func TestRetry_OfAFinalFailureGetsAFreshBudget(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: task.Policy{MaxAttempts: 2,
			Backoff: task.Backoff{Base: time.Millisecond, Max: time.Millisecond}}})
		n := c.StartNode("a", nil, w.on("a"))
		f := w.submit(t, n, "x")
		w.next(t).fail(errNoLuck)
		w.next(t).fail(errNoLuck)
		wantFailure(t, f, events.CodeFailed)
		if _, err := n.Operations().Retry(within(t, soon), "x"); err != nil {
			t.Fatal(err)
		}
		r := w.next(t)
		if r.attempt.Failures != 0 {
			t.Errorf("%d failures before, want a fresh budget", r.attempt.Failures)
		}
		again := w.submit(t, n, "x")
		r.fail(errNoLuck)
		w.next(t).succeed("done")
		want(t, again, "done")
		wantFailure(t, f, events.CodeFailed)
	})
}

func TestRepeat_TaskRunsAgainAfterEachSuccess(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		const pause = 200 * time.Millisecond
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams,
			AfterSuccess: func(_, _ string, now time.Time) time.Time { return now.Add(pause) }})
		n := c.StartNode("a", nil, w.on("a"))
		first := w.submit(t, n, "x")
		w.next(t).succeed("1")
		want(t, first, "1")
		second := w.submit(t, n, "x")
		w.next(t).succeed("2")
		want(t, second, "2")
		w.next(t).succeed("3")
		awaitTask(t, n, "x", "has run three times", func(task task.Task) bool { return task.Runs == 3 })
		for at, i := startedAt(t, n.Client, "x"), 1; i < 3; i++ {
			if at[i].Sub(at[i-1]) < pause {
				t.Errorf("run %d started %s after the one before", i+1, at[i].Sub(at[i-1]))
			}
		}
	})
}

// By type, which plans here, and by name, which a node plans.
func TestRules_SubmitThatRunsNowDoesNotWaitForTheRepetition(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, RunNow: true,
			Priority:     func(p string) int64 { return int64(len(p)) },
			AfterSuccess: func(_, _ string, now time.Time) time.Time { return now.Add(time.Hour) }})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		first := w.submit(t, client, "xxx")
		w.next(t).succeed("1")
		want(t, first, "1")
		second := w.submit(t, client, "xxx")
		w.next(t).succeed("2")
		want(t, second, "2")
		third := submitRaw(t, client.Client, "work", `"xxx"`, task.SubmitOptions{})
		w.next(t).succeed("3")
		if result, err := third.Wait(within(t, soon)); err != nil || string(result) != `"3"` {
			t.Errorf("result %s, %v", result, err)
		}
		task, err := n.Get(within(t, soon), "xxx")
		if err != nil || task.Priority != 3 || task.Due() == 0 {
			t.Errorf("priority %d, next run at %d, %v; want 3, and a next run", task.Priority, task.Due(), err)
		}
	})
}

func TestRepeat_FailureInBetweenDoesNotEndTheSchedule(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams,
			Policy:       task.Policy{Backoff: task.Backoff{Base: time.Millisecond, Max: time.Millisecond}},
			AfterSuccess: func(_, _ string, now time.Time) time.Time { return now }})
		n := c.StartNode("a", nil, w.on("a"))
		w.submit(t, n, "x")
		w.next(t).succeed("1")
		w.next(t).fail(errNoLuck)
		w.next(t).succeed("2")
		r := w.next(t)
		if r.attempt.Number != 4 || r.attempt.Failures != 0 {
			t.Errorf("attempt %d after %d failures, want 4 after 0", r.attempt.Number, r.attempt.Failures)
		}
		if err := n.Operations().Cancel(within(t, soon), "x", ""); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSnooze_IsNoFailureAndNeedsNoBudget(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: task.Policy{MaxAttempts: 1}})
		n := c.StartNode("a", nil, w.on("a"))
		f := w.submit(t, n, "x")
		w.next(t).fail(behaviors.Snooze(300 * time.Millisecond))
		snoozed := awaitTask(t, n, "x", "is snoozed", func(snoozed task.Task) bool { return !snoozed.OnNode() })
		if snoozed.Status != task.Running || snoozed.Error != nil {
			t.Errorf("status %s, error %v; want RUNNING without error", snoozed.Status, snoozed.Error)
		}
		awaitExplained(t, n.Client, "x", task.WhyScheduled)
		r := w.next(t)
		if r.attempt.Number != 2 || r.attempt.Failures != 0 || r.attempt.Lost != 0 {
			t.Errorf("attempt %+v, want 2 without failure or loss", r.attempt)
		}
		r.succeed("done")
		want(t, f, "done")
		if at := startedAt(t, n.Client, "x"); at[1].Sub(at[0]) < 300*time.Millisecond {
			t.Errorf("ran again after %s", at[1].Sub(at[0]))
		}
	})
}

func TestTimeout_EndsTheAttemptAndCountsAsAFailure(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: task.Policy{MaxAttempts: 1, Timeout: 200 * time.Millisecond}})
		n := c.StartNode("a", nil, w.on("a"))
		f := w.submit(t, n, "x")
		r := w.next(t)
		if r.attempt.Deadline.IsZero() {
			t.Error("the attempt knows no deadline")
		}
		if e := wantFailure(t, f, events.CodeTimeout); !e.Retryable {
			t.Errorf("error %+v, want a retryable one", e)
		}
		if r.ctx.Err() == nil {
			t.Error("the context of the attempt goes on")
		}
	})
}

func TestDelay_IsHonouredAcrossARestartOfAllNodes(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		const delay = 2 * time.Second
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Delay: func(string) time.Duration { return delay }})
		a, b := c.StartNode("a", nil, w.on("a")), c.StartNode("b", nil, w.on("b"))
		began := time.Now().Truncate(time.Millisecond)
		w.submit(t, a, "x")
		a.Stop()
		b.Stop()
		again := c.StartNode("a", nil, w.on("a"))
		f := w.Attach(again, "x")
		r := w.next(t)
		if r.attempt.Number != 1 {
			t.Errorf("attempt %d, want 1", r.attempt.Number)
		}
		r.succeed("done")
		want(t, f, "done")
		if at := startedAt(t, again.Client, "x"); at[0].Sub(began) < delay {
			t.Errorf("started %s after the submit, want at least %s", at[0].Sub(began), delay)
		}
	})
}
