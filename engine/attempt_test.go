package engine_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/task"
)

// A completion is held up, by whichever way, until the node's session has ended and the task has run elsewhere.
func TestCompletion_HeldUpPastTheSessionIsRefused(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	var slow atomic.Bool
	w := &wire{sent: only(&slow, laneWork, hold)}
	a := c.StartNode("a", noSlots)
	b := c.StartNode("b", with(noShards, w.through), j)
	f := j.submit(t, a, "x")
	first := j.next(t)
	slow.Store(true)
	first.succeed("1")
	testcluster.Await(t, "the completion is on its way", func() bool { return w.holding() > 0 })
	endSession(t, c, b)
	second := j.next(t)
	if second.Number != 2 || second.Lost != 1 || second.Failures != 0 {
		t.Errorf("attempt %d after %d losses and %d failures, want 2 after 1 and 0", second.Number, second.Lost, second.Failures)
	}
	slow.Store(false)
	w.release()
	awaitTask(t, a.Client, "x", "still runs", isRunning)
	second.succeed("2")
	want(t, f, "2")
	wantHistory(t, a.Client, "x", "Created Started Lost Started Succeeded")
}

// Of a function that does not return the log and the figures tell, and whoever asks why nothing runs.
func TestAttempt_WhoseFunctionDoesNotReturnIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := newModelled(t, true), new(logBook)
		job := newJob(task.Policy{Timeout: time.Second, MaxAttempts: 1})
		job.stubborn = true
		a := c.start("a", 0, func(c *cfg) { c.Slots, c.Log = 1, book.logger() }, job)
		a.ready(t)
		job.submit(t, a, "stuck").Close()
		r := job.next(t)
		if _, err := a.Attach("stuck").Wait(within(t)); err == nil {
			t.Error("it has not failed")
		}
		job.submit(t, a, "next").Close()
		time.Sleep(time.Second)
		if got := a.Vitals(); got.SlotsStuck != 1 || len(got.Degraded()) != 1 {
			t.Errorf("%d slots stuck, degraded: %q", got.SlotsStuck, got.Degraded())
		}
		const message = "a function does not return although its context has ended: its slot stays taken until it does"
		if said := book.said(t, message); len(said) != 1 || said[0]["task"] != "stuck" || said[0]["level"] != "WARN" {
			t.Errorf("said %v", said)
		}
		want := "it is ready and waits for a slot for job on a; 1 slots of node a are held by functions that did not return after their context had ended"
		if why, err := a.Explain(within(t), "next"); err != nil || why.Text != want {
			t.Errorf("explained: %q, %v", why.Text, err)
		}
		r.ends <- task.Outcome{}
		job.next(t).ends <- task.Outcome{}
		if got := a.Vitals(); got.SlotsStuck != 0 {
			t.Errorf("%d slots stuck after it has returned", got.SlotsStuck)
		}
	})
}

// A behavior that asks for no attempt for now gives them back: neither the retries nor the losses of the run are
// used up.
func TestRelease_IsNeitherFailureNorLoss(t *testing.T) {
	inService(t, task.Policy{MaxAttempts: 1, MaxLost: 1}, func(t *testing.T, c *modelled, j *job) {
		f := j.submit(t, c.nodes[0].Client, "x")
		began := time.Now()
		for i, wait := range []time.Duration{0, 0, time.Minute, 0} {
			r := j.next(t)
			if r.Failures != 0 || r.Lost != 0 || r.Number != i+1 {
				t.Errorf("attempt %d, after %d failures and %d losses", r.Number, r.Failures, r.Lost)
			}
			r.ends <- task.Outcome{Release: true, Wait: wait}
		}
		r := j.next(t)
		if took := time.Since(began); took < time.Minute || took > time.Minute+10*time.Second {
			t.Errorf("the last attempt begins after %s, want a minute", took)
		}
		r.succeed("1")
		want(t, f, "1")
		wantHistory(t, c.nodes[0].Client, "x", "Created Started Released Started Released Started Released Started Released Started Succeeded")
	})
}
