package check

import (
	"sort"

	"taskledger/events"
)

// gap bounds the time between two entries that counts for anything that is remembered for a time.
const gap = 60_000

// foldClock holds the time that has been counted at each entry of a shard.
type foldClock struct{ times, counted []events.Millis }

// Entry takes the next entry.
func (c *foldClock) Entry(at events.Millis) {
	n := len(c.times)
	counted := events.Millis(0)
	if n > 0 {
		counted = c.counted[n-1] + min(at-c.times[n-1], gap)
	}
	c.times, c.counted = append(c.times, at), append(c.counted, counted)
}

// Since returns the part of the time from an entry to the latest one that counts.
func (c *foldClock) Since(at events.Millis) events.Millis {
	first := sort.Search(len(c.times), func(i int) bool { return c.times[i] > at }) - 1
	return c.counted[len(c.counted)-1] - c.counted[max(first, 0)]
}
