package shard_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// An entry was written by a clock an hour ahead. Under the right clock the next retry or repetition waits for as
// long as it was to by entry times, and so for twice as long at most, be it under the same owner or the next one.
// Entries never go back in time.
func TestShardTime_RetryAfterAnEntryAheadComesInTwiceItsBackOff(t *testing.T) {
	e := &events.Error{Code: "failed", Retryable: true}
	failed := func(c *command.Complete) { c.How, c.Error = command.Failed, e }
	endings := map[string]func(c *command.Complete){ // as an attempt reports them
		"failure by policy": func(c *command.Complete) {
			failed(c)
			c.ByPolicy, c.Random = true, math.MaxUint32
		},
		"failure with a wait": func(c *command.Complete) {
			failed(c)
			c.Next, c.Wait = command.AnyTime, time.Second
		},
		"failure until a time": func(c *command.Complete) {
			failed(c)
			c.Next, c.Wait = events.MillisOf(time.Now().Add(time.Second)), time.Second
		},
		"repetition after a wait": func(c *command.Complete) { c.Next, c.Wait = command.AnyTime, time.Second },
	}
	for name, change := range map[string]func(*fixture){"same owner": func(*fixture) {}, "next owner": (*fixture).takeOver} {
		for ending, end := range endings {
			t.Run(name+"/"+ending, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { followedInTwiceItsWait(t, change, end) })
			})
		}
	}
}

func followedInTwiceItsWait(t *testing.T, change func(*fixture), end func(*command.Complete)) {
	b := newFixture(t)
	b.time = benchStart.Add(time.Hour)
	b.submit(events.Policy{MaxAttempts: 5, Backoff: events.Backoff{Base: time.Second, Max: time.Second}})
	b.time = benchStart
	change(b)
	_, first := b.assign()
	change(b)
	done := report(first, command.Succeeded)
	end(done)
	b.accept(command.LaneWork, done)
	endedAt := b.own.State().Time
	change(b)
	offer := b.offer()
	b.deliver(offer)
	b.turn()
	began := time.Now()
	for turns := 0; b.task().Node == ""; turns++ {
		if turns > 10 || time.Since(began) > 2*time.Second+5*time.Millisecond {
			t.Fatalf("attempt 2 has not started after %s: it is due at %d, the shard's time is %d", time.Since(began), b.task().Due, b.own.Now())
		}
		wait, ok := b.own.UntilDue()
		if !ok {
			t.Fatal("the owner waits for nothing")
		}
		time.Sleep(wait)
		b.time = b.time.Add(wait)
		b.turn()
	}
	if waited := b.own.State().Time - endedAt; waited < 999 {
		t.Errorf("attempt 2 has started %d ms after the end of attempt 1, by the times of the entries", waited)
	}
}

// What is kept follows from the journal alone. The wall clock of this machine is years ahead of every entry.
func TestForgetting_FollowsEntryTimeNotTheClock(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{Retain: time.Hour})
	b.assign()
	b.accept(command.LaneWork, report(b.task(), command.Succeeded))
	b.touch("early", 59*time.Minute)
	if b.own.State().Task("x") == nil {
		t.Error("forgotten before its time")
	}
	digest := b.own.State().Digest(nil)
	b.takeOver()
	if b.own.State().Digest(nil) != digest {
		t.Error("the next owner's state differs from the one before")
	}
	b.touch("late", 2*time.Minute)
	if b.own.State().Task("x") != nil {
		t.Error("remembered after its time")
	}
}

// The wall clock of the next owner is behind: time must not run back within the shard.
func TestTime_NeverRunsBackWithinAShard(t *testing.T) {
	b := newFixture(t)
	b.touch("a", time.Hour)
	before := b.own.State().Time
	b.takeOver()
	b.touch("b", -2*time.Hour)
	if got := b.own.State().Time; got < before || got > before.Add(time.Minute) {
		t.Errorf("entry is of %s, want about %s: that of the entry before", got.Time(), before.Time())
	}
}

// A task is ready and waits for a slot when the clock is set back to before its time.
func TestTime_WhatIsReadyStaysSoWhenTheClockIsSetBack(t *testing.T) {
	b := newFixture(t)
	c := submitOf(events.Policy{})
	c.NotBefore = b.time.Add(10 * time.Second)
	b.accept(command.LaneSubmit, c)
	b.time = b.time.Add(11 * time.Second)
	b.turn()
	b.time = b.time.Add(-5 * time.Second)
	b.assign()
	if task := b.task(); !task.OnNode() || task.StartedAt < c.NotBefore {
		t.Errorf("task is %s since %d, due %d", task.Phase(), task.StartedAt, c.NotBefore)
	}
}
