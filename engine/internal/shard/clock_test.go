package shard

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// However the wall clock jumps, the time of a shard never falls, goes at half speed at least, and no faster than
// that while it is ahead; and who sleeps until something is due wakes when it is.
func TestShardClock_NeverFallsNorStandsStill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mono := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "since the base"))
		wall := events.Millis(rapid.Int64Range(1, 1e12).Draw(t, "wall"))
		folded := wall + events.Millis(rapid.Int64Range(-1e7, 1e7).Draw(t, "folded less wall"))
		c := newClock(folded, mono)
		decided, at := folded, mono
		for range rapid.IntRange(1, 20).Draw(t, "turns") {
			passes := time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "passes"))
			mono += passes
			wall += events.Millis(passes.Milliseconds())
			if rapid.IntRange(0, 3).Draw(t, "jumps") == 0 {
				wall += events.Millis(rapid.Int64Range(-1e7, 1e7).Draw(t, "by"))
			}
			now := c.Now(wall, mono)
			if least := decided.Add((mono - at) / 2); now < least-1 || now < decided {
				t.Fatalf("it is %d, %s after it was %d", now, mono-at, decided)
			} else if now > max(wall, least+1) {
				t.Fatalf("it is %d, by the wall clock %d, %s after it was %d", now, wall, mono-at, decided)
			}
			due := now + events.Millis(rapid.Int64Range(1, 1e5).Draw(t, "due in"))
			sleep := c.Until(due, wall, mono)
			if sleep > time.Second || sleep <= 0 {
				t.Fatalf("sleeps %s", sleep)
			}
			woken := func(d time.Duration) events.Millis {
				return c.Now(wall+events.Millis(d.Milliseconds()), mono+d)
			}
			if sleep < time.Second && (woken(sleep) < due || woken(sleep-2*time.Millisecond) >= due) {
				t.Fatalf("due at %d: sleeps %s from %d, to %d", due, sleep, now, woken(sleep))
			}
			if rapid.Bool().Draw(t, "decides") {
				c.Hold(now, mono)
				decided, at = now, mono
			}
		}
	})
}

func TestShardClock_SleepsUntilWhateverIsDue(t *testing.T) {
	const last = 1_800_000_000_000
	c := newClock(last, time.Hour)
	for _, due := range []events.Millis{command.MaxTime, math.MaxInt64 / 2, math.MaxInt64} {
		if sleep := c.Until(due, last, time.Hour); sleep != time.Second {
			t.Errorf("due at %d: sleeps %s, want a second", due, sleep)
		}
	}
}
