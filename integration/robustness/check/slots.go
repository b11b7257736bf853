package check

import (
	"slices"
	"strings"
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

// Waited returns the time that a task of a killed node waited to run again although other nodes were free: from the
// kill, or from the last possible sign of life of the owner of its shard, if its session ended later; without the time
// in which a fault disturbed every node that was there, and that in which the task was ready and every slot of the
// others taken.
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
	took := time.Duration(next - from)
	without := span{from, next}.without(s.undisturbed())
	for _, w := range without {
		took -= w.lasts()
	}
	for _, w := range s.wanting(task, from, next) {
		for _, further := range w.without(without) {
			took -= further.lasts()
		}
	}
	return took
}

// Wanting is for how long, between two times of the run, a task was ready and no undisturbed node that may run it had a
// free slot.
func (s *Slots) Wanting(task string, from, until int64) (total time.Duration) {
	for _, w := range s.wanting(task, from, until) {
		total += w.lasts()
	}
	return total
}

func (s *Slots) wanting(task string, from, until int64) (all []span) {
	t := s.checker.tasks[task]
	if t == nil || !t.known() || !s.checker.timed() {
		return nil
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
		all = append(all, ready.without(s.free(at.behavior))...)
	}
	return all
}

// free returns when some node that no fault disturbed had a free slot for a behavior.
func (s *Slots) free(behavior string) (all []span) {
	for _, r := range s.rooms {
		if !slices.Contains(r.behaviors, behavior) {
			continue
		}
		disturbed := s.disturbed(r.node)
		for _, free := range r.free[behavior] {
			all = append(all, free.without(disturbed)...)
		}
	}
	return all
}

// undisturbed returns when some node was there that no fault disturbed.
func (s *Slots) undisturbed() (all []span) {
	for _, r := range s.rooms {
		all = append(all, r.there.without(s.disturbed(r.node))...)
	}
	return all
}

// disturbed returns when faults had the session of a node as their target, or left no room in the store.
func (s *Slots) disturbed(session string) (all []span) {
	for i := range s.checker.run.Faults {
		f := &s.checker.run.Faults[i]
		_, target, _ := strings.Cut(f.Target, " ")
		if target == session && !history.UsedTo(f.Kind) || slices.Contains(history.FullKinds, f.Kind) {
			all = append(all, span{f.From, f.Until})
		}
	}
	return all
}
