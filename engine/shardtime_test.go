package engine

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// An entry was written by a clock an hour ahead. Under the right clock the next retry or repetition waits for as long as it was to
// by entry times, and so for twice as long at most, be it under the same owner or the next one. Entries never go back in time.
func TestShardTime_RetryAfterAnEntryAheadComesInTwiceItsBackOff(t *testing.T) {
	e := &events.Error{Code: "failed", Retryable: true}
	endings := map[string]func(c *command.Complete){
		"failure by policy": func(c *command.Complete) {
			reportFailure(c, Outcome{Err: e, Next: byPolicy}, false)
			c.Random = math.MaxUint32
		},
		"failure with a wait":       func(c *command.Complete) { reportFailure(c, Outcome{Err: e, Wait: time.Second}, false) },
		"failure until a time":      func(c *command.Complete) { reportFailure(c, Outcome{Err: e, Next: time.Now().Add(time.Second)}, false) },
		"repetition after a wait":   func(c *command.Complete) { reportSuccess(c, Outcome{Wait: time.Second}) },
		"repetition at a past time": func(c *command.Complete) { reportSuccess(c, Outcome{Wait: time.Second, Next: time.Unix(0, 0)}) },
	}
	for name, change := range map[string]func(*bench){"same owner": func(*bench) {}, "next owner": (*bench).takeOver} {
		for ending, end := range endings {
			t.Run(name+"/"+ending, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { followedInTwiceItsWait(t, change, end) })
			})
		}
	}
}

func followedInTwiceItsWait(t *testing.T, change func(*bench), end func(*command.Complete)) {
	b := newBench(t, -1)
	b.time = benchStart.Add(time.Hour)
	b.submit(Policy{MaxAttempts: 5, Backoff: events.Backoff{Base: time.Second, Max: time.Second}})
	b.time = benchStart
	change(b)
	_, first := b.assign()
	change(b)
	done := report(first, command.Succeeded)
	end(done)
	b.accept(command.LaneWork, done)
	endedAt := b.own.state.Time
	change(b)
	offer := b.offer()
	b.deliver(offer)
	b.turn()
	began := time.Now()
	for turns := 0; b.task().Node == ""; turns++ {
		if turns > 10 || time.Since(began) > 2*time.Second+5*time.Millisecond {
			t.Fatalf("attempt 2 has not started after %s: it is due at %d, the shard's time is %d", time.Since(began), b.task().Due, b.own.now())
		}
		wait, ok := b.own.untilDue()
		if !ok {
			t.Fatal("the owner waits for nothing")
		}
		time.Sleep(wait)
		b.time = b.time.Add(wait)
		b.turn()
	}
	if waited := b.own.state.Time - endedAt; waited < 999 {
		t.Errorf("attempt 2 has started %d ms after the end of attempt 1, by the times of the entries", waited)
	}
}
