package projection

import (
	"math"

	"taskledger/events"
)

// Since returns how much counts of the time from an entry on until now.
func (s *Shard) Since(at, now events.Millis) events.Millis { return s.steady.Since(at, now) }

// Kinds returns how many kinds, and behaviors, the shard keeps something of.
func (s *Shard) Kinds() (kinds, groups int) { return len(s.kinds), len(s.groups) }

// Nodes returns how many nodes the shard keeps something of.
func (s *Shard) Nodes() int { return len(s.running.byNode) }

// WrapSoon lets the numbers of places wrap around after so many more tasks. Nothing may be in the queues.
func (s *Shard) WrapSoon(behavior string, after uint32) {
	g := s.group(behavior)
	for _, q := range []*queue{&s.due, &g.ready, &g.finished} {
		q.line.begin = math.MaxUint32 - after
	}
}

// Places returns how many tasks the ready queue of a behavior has room for.
func (s *Shard) Places(behavior string) int {
	q := &s.groups[behavior].ready
	return cap(q.line.tasks) + cap(q.heap)
}
