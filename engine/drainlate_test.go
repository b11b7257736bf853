package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
)

// A node that stops in order ends its functions, gives them the ten seconds that they are promised, and loses no
// attempt: not even one whose function returns at the end of them, or never. It takes no longer than whoever stops
// nodes is told.
func TestDrain_WhatReturnsLateOrNeverIsReleasedInTime(t *testing.T) {
	for _, bus := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, job := newModelled(t, bus), newJob(engine.Policy{})
			job.stubborn = true
			const grace, most = 3 * time.Second, 3*time.Second + 10*time.Second + 2*time.Second
			a := c.start("a", 0, func(c *cfg) { c.Grace = grace }, job)
			a.ready(t)
			b := c.start("b", 0, func(c *cfg) { c.Slots = -1 }, job)
			b.ready(t)
			delays := map[events.TaskID]time.Duration{"soon": 0, "late": 9 * time.Second, "never": -1}
			ended, release := make(chan time.Duration, 1), make(chan struct{})
			defer close(release)
			for id := range delays {
				job.submit(t, a, id).Close()
			}
			began := time.Now()
			for range delays {
				r := job.next(t)
				go func() {
					<-r.ctx.Done()
					if after := time.Since(began); after < grace {
						t.Errorf("the context of %s ended after %s", r.Task, after)
					}
					if delay := delays[r.Task]; delay >= 0 {
						time.Sleep(delay)
					} else {
						<-release
					}
					r.ends <- engine.Outcome{Err: &events.Error{Code: "x", Message: "stopped"}}
				}()
			}
			a.stop()
			go func() {
				a.end()
				ended <- time.Since(began)
			}()
			if took := <-ended; took < grace || took > most {
				t.Errorf("the node stopped after %s, want %s at most", took, most)
			}
			c.nodes = c.nodes[1:]
			for id := range delays {
				wantHistory(t, b.Client, id, "Created Started Released")
			}
		})
	}
}

// Of a function that does not return the log and the figures tell, and whoever asks why nothing runs.
func TestAttempt_WhoseFunctionDoesNotReturnIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := newModelled(t, true), new(logBook)
		job := newJob(engine.Policy{Timeout: time.Second, MaxAttempts: 1})
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
		r.ends <- engine.Outcome{}
		job.next(t).ends <- engine.Outcome{}
		if got := a.Vitals(); got.SlotsStuck != 0 {
			t.Errorf("%d slots stuck after it has returned", got.SlotsStuck)
		}
	})
}

// A failure about which the behavior has not decided when its node stops is no loss: nothing has been reported.
func TestDrain_AFailureThatIsNotDecidedInTimeIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, started := newModelled(t, true), make(chan struct{})
		b := behaviors.Define("b", &behaviors.Rules[int, string]{
			AfterFailure: func(int, behaviors.Failure, time.Time) time.Time {
				time.Sleep(8 * time.Second)
				return time.Time{}
			},
		})
		panics := b.Bind(func(ctx context.Context, _ int) (string, error) {
			close(started)
			<-ctx.Done()
			time.Sleep(5 * time.Second)
			panic("boom")
		})
		a := c.start("a", 0, func(c *cfg) { c.Grace = time.Second }, panics)
		a.ready(t)
		other := c.start("b", 0, func(c *cfg) { c.Slots = -1 })
		other.ready(t)
		f, err := b.Submit(within(t), a, 1)
		if err != nil {
			t.Fatal(err)
		}
		id := f.ID()
		f.Close()
		<-started
		a.stop()
		a.end()
		c.nodes = c.nodes[1:]
		wantHistory(t, other.Client, id, "Created Started Released")
		time.Sleep(10 * time.Second) // the rule returns after the node has stopped
	})
}
