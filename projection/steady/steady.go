// Package steady counts time by the entries of a journal, as clocks that jump must not: of a long gap between two
// entries it counts a minute. What a shard promises to remember for a time is counted so. It is pure.
package steady

import (
	"slices"

	"taskledger/events"
	"taskledger/internal/wire"
)

const (
	// MaxGap bounds the time between two entries that counts.
	MaxGap events.Millis = 60_000
	// Longest is the longest time that can be told apart from longer ones.
	Longest events.Millis = 2 * 3_600_000
)

// maxSteps bounds the gaps that are remembered: a minute counts of each.
const maxSteps = int(Longest/MaxGap) + 1

// Clock holds the time that was counted up to an entry. The zero value has counted nothing yet; a nil Clock counts
// all time.
type Clock struct {
	time  events.Millis // of the last entry
	steps []step        // the latest gaps, oldest first; what was listed is never changed
}

// step is a gap of which not all counts.
type step struct {
	at  events.Millis // of the entry after it
	cut events.Millis // what does not count
}

// Tick counts the time up to an entry.
func (c *Clock) Tick(now events.Millis) {
	if cut := c.cut(now); cut > 0 {
		c.steps = append(c.steps, step{now, cut})
	}
	c.time = now
	if len(c.steps) > 0 && c.Since(c.steps[0].at, now) > Longest {
		c.steps = slices.Clone(c.steps[1:])
	}
}

// cut returns how much of the time since the last entry does not count when the next one is of a time.
func (c *Clock) cut(now events.Millis) events.Millis {
	if c.time == 0 {
		return 0
	}
	return max(now-c.time-MaxGap, 0)
}

// Since returns how much of the time counts that has passed from an entry on, given as that of the entry, until now,
// the time of the last entry or of the next one. Beyond Longest it may be more.
func (c *Clock) Since(at, now events.Millis) events.Millis {
	passed := now - at
	if c == nil {
		return passed
	}
	if at <= c.time {
		passed -= c.cut(now)
	}
	for i := len(c.steps) - 1; i >= 0 && c.steps[i].at > at; i-- {
		passed -= c.steps[i].cut
	}
	return passed
}

// List returns the rows of a clock, the arrays [time of the entry after a gap, what of the gap does not count], and
// what writes each of them.
func (c *Clock) List() (rows int, write func(i int, w *wire.Writer)) {
	steps := c.steps
	return len(steps), func(i int, w *wire.Writer) {
		w.Array(2)
		w.Int(int64(steps[i].at))
		w.Int(int64(steps[i].cut))
	}
}

// Read reads a row of List.
func (c *Clock) Read(r *wire.Reader) {
	r.ArrayOf(2)
	is := step{events.Millis(r.Int()), events.Millis(r.Int())}
	switch n := len(c.steps); {
	case r.Err() != nil:
	case is.cut <= 0 || is.cut >= is.at || n > 0 && is.at-is.cut < c.steps[n-1].at || n == maxSteps:
		r.Fail("gap of %d and a minute before %d, behind %d others", is.cut, is.at, n)
	default:
		c.steps = append(c.steps, is)
	}
}

// Restored completes a clock whose rows were read, with the time of the last entry. It reports whether they can be of
// it.
func (c *Clock) Restored(now events.Millis) bool {
	c.time = now
	return len(c.steps) == 0 || c.steps[len(c.steps)-1].at <= now
}
