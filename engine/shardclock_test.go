package engine

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// However the wall clock jumps, the time of a shard never falls, goes at half speed at least, and no faster than that while
// it is ahead; and who sleeps until something is due wakes when it is.
func TestShardClock_NeverFallsNorStandsStill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mono := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "since the base"))
		wall := events.Millis(rapid.Int64Range(1, 1e12).Draw(t, "wall"))
		folded := wall + events.Millis(rapid.Int64Range(-1e7, 1e7).Draw(t, "folded less wall"))
		c := shardClock{folded, mono}
		decided, at := folded, mono
		for range rapid.IntRange(1, 20).Draw(t, "turns") {
			passes := time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "passes"))
			mono += passes
			wall += events.Millis(passes.Milliseconds())
			if rapid.IntRange(0, 3).Draw(t, "jumps") == 0 {
				wall += events.Millis(rapid.Int64Range(-1e7, 1e7).Draw(t, "by"))
			}
			now := c.now(wall, mono)
			if least := decided.Add((mono - at) / 2); now < least-1 || now < decided {
				t.Fatalf("it is %d, %s after it was %d", now, mono-at, decided)
			} else if now > max(wall, least+1) {
				t.Fatalf("it is %d, by the wall clock %d, %s after it was %d", now, wall, mono-at, decided)
			}
			due := now + events.Millis(rapid.Int64Range(1, 1e5).Draw(t, "due in"))
			sleep := c.until(due, wall, mono)
			if sleep > time.Second || sleep <= 0 {
				t.Fatalf("sleeps %s", sleep)
			}
			woken := func(d time.Duration) events.Millis {
				return c.now(wall+events.Millis(d.Milliseconds()), mono+d)
			}
			if sleep < time.Second && (woken(sleep) < due || woken(sleep-2*time.Millisecond) >= due) {
				t.Fatalf("due at %d: sleeps %s from %d, to %d", due, sleep, now, woken(sleep))
			}
			if rapid.Bool().Draw(t, "decides") {
				c.hold(now, mono)
				decided, at = now, mono
			}
		}
	})
}

func TestShardClock_SleepsUntilWhateverIsDue(t *testing.T) {
	c := shardClock{1_800_000_000_000, time.Hour}
	for _, due := range []events.Millis{command.MaxTime, math.MaxInt64 / 2, math.MaxInt64} {
		if sleep := c.until(due, c.held, time.Hour); sleep != time.Second {
			t.Errorf("due at %d: sleeps %s, want a second", due, sleep)
		}
	}
}

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
