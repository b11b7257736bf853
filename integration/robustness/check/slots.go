package check

import (
	"slices"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// Slots is when slots were taken in a run.
type Slots struct {
	checker *checker
	rooms   []*roomOf
}

// SlotsOf returns when slots were taken in a run, as far as its record tells.
func SlotsOf(run *history.Run) *Slots {
	c := newChecker(run)
	c.checkEntries()
	c.fold()
	return &Slots{c, c.rooms(0)}
}

// Waited is how long a task whose node was killed had to wait until it ran again, for which others were free: from the kill, or from
// when the owner of its shard may have given its last sign of life, if its session ended later; without the time in which the task was
// ready and every slot taken.
func (s *Slots) Waited(task string, killed, next int64) time.Duration {
	from, owner, run := killed, "", s.checker.run
	shard := events.TaskID(task).Shard(len(s.checker.shards))
	for i := range run.Keys {
		switch k := &run.Keys[i]; {
		case k.At >= next:
		case k.Node == "" && k.Shard == shard:
			owner = k.Owner
		case k.Node != "" && k.Node == owner && k.Deleted:
			from = max(from, k.At-run.Info.TTLMs*int64(time.Millisecond))
		}
	}
	return time.Duration(next-from) - s.Wanting(task, from, next)
}

// Wanting is for how long, between two times of the run, a task was ready and no node that may run it had a free slot.
func (s *Slots) Wanting(task string, from, until int64) (total time.Duration) {
	t := s.checker.tasks[task]
	if t == nil || !t.known() || !s.checker.timed() {
		return 0
	}
	for i := range t.steps {
		at := &t.steps[i].state
		if at.phase == absent || at.phase == running || at.suspended || at.due == 0 {
			continue
		}
		moment := s.checker.moment(t, i)
		later := max(at.due-t.shard.entries[t.steps[i].entry-1].Time, 0) // by the time of the shard, which may be ahead of the clock
		ready := span{max(moment+int64(later)*int64(time.Millisecond), from), until}
		if i+1 < len(t.steps) {
			ready.until = min(until, s.checker.moment(t, i+1))
		}
		if ready.lasts() <= 0 {
			continue
		}
		for _, left := range ready.without(s.free(at.behavior)) {
			total += left.lasts()
		}
	}
	return total
}

// free is when some node had a free slot for a behavior.
func (s *Slots) free(behavior string) (all []span) {
	for _, r := range s.rooms {
		if slices.Contains(r.behaviors, behavior) {
			all = append(all, r.free[behavior]...)
		}
	}
	return all
}
