package shard

import (
	"math"
	"time"

	"taskledger/events"
)

// clock is the time of a shard at its owner: the wall clock, or, while that is behind what was already decided, the
// time of that decision and what has passed since on the monotonic clock, at half speed. So entry time never falls,
// the wall clock catches up with a shard that is ahead of it, and what waits for a while comes all the same.
//
// A new owner counts from when it has folded the journal, which may lengthen a wait. A wall clock that steps ahead,
// or that of a new owner which is ahead, shortens waits by as much: what is due after a while is due at a time of
// the shard.
type clock struct {
	latest events.Millis // the latest time by which something was decided
	since  time.Duration // when that was, on the monotonic clock
}

// newClock returns a clock that goes on from the time by which something was decided last, folded at mono.
func newClock(last events.Millis, mono time.Duration) clock { return clock{last, mono} }

// ahead returns how far time has come without the wall clock.
func (c *clock) ahead(mono time.Duration) events.Millis { return c.latest.Add((mono - c.since) / 2) }

// Now is the time of the shard.
func (c *clock) Now(wall events.Millis, mono time.Duration) events.Millis {
	return max(wall, c.ahead(mono))
}

// Hold keeps time from falling behind now, by which something was decided at mono.
func (c *clock) Hold(now events.Millis, mono time.Duration) {
	if now > c.ahead(mono) { // else it goes on as it does: it would lose a fraction whenever it began anew
		c.latest, c.since = now, mono
	}
}

// Until returns how long the owner may sleep before the time is due: a second at most, since the wall clock may jump.
func (c *clock) Until(due, wall events.Millis, mono time.Duration) time.Duration {
	left := min(due-wall, 2*min(due-c.latest, math.MaxInt64/4)-events.Millis((mono-c.since).Milliseconds()), 1000)
	return time.Duration(max(left, 0)) * time.Millisecond
}
