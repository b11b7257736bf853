package check

import (
	"slices"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// graceMs bounds the time beyond two TTLs that a task that is due may take to start.
const graceMs = 2000

// checkEnded holds that no task that somebody was promised a run of waits or runs at the end, unless something keeps it
// from running, that those that have ended did so in time, and that no run has outlasted its deadline.
func (c *checker) checkEnded() {
	paused := c.pausedAtTheEnd()
	ends := events.Millis(c.run.Info.EndWall)
	if ends == 0 {
		ends = c.latest
	}
	late := events.Millis(2*c.run.Info.TTLMs + graceMs)
	ripe := ends - late
	for _, t := range c.sorted() {
		c.checkBound(t)
		s := t.last()
		if t.known() && s.overdue(ripe) && !c.stepped() {
			c.accuse(ended, t, 0, "at the end its run goes on, %d ms after its deadline", ends-s.deadline)
		}
		if !t.known() || !t.promised() || slices.Contains(paused, s.behavior) || !s.stuck(ripe) {
			continue
		}
		if s.phase != running && c.dueOnceAdmitted(s, late) > ripe {
			continue
		}
		if s.phase == running {
			c.accuse(ended, t, 0, "at the end attempt %d still runs, %d ms after its start", s.attempt, ends-s.since)
		} else {
			c.accuse(ended, t, 0, "at the end it is %s after %d attempts, and was due %d ms ago", s.phase, s.attempt, ends-s.due)
		}
	}
}

// dueOnceAdmitted returns when a task is due, at the earliest: a repetition that is not admitted before it is late is
// due when owners know that the store has room again.
func (c *checker) dueOnceAdmitted(s *state, late events.Millis) events.Millis {
	due := s.due
	if !s.isRepetition() || c.run.Info.EndWall == 0 {
		return due
	}
	for _, held := range c.heldRepetitions() {
		if c.wall(held.from) <= due+late {
			due = max(due, c.wall(held.until))
		}
	}
	return due
}

// checkBound holds that a task ended within the bound of the run after all faults had healed, and nobody asked for more
// of it.
func (c *checker) checkBound(t *task) {
	info, s := &c.run.Info, t.last()
	if !t.known() || !t.promised() || !s.final() || info.BoundMs == 0 {
		return
	}
	from := info.Healed
	if t.scheduled() && (t.committed(0) != 0 || info.EndWall != 0) {
		from = max(from, c.moment(t, 0))
	}
	for _, o := range t.operations {
		if o.Verb != history.Get && o.Verb != history.Wait {
			from = max(from, o.Call, o.Return)
		}
	}
	var took int64
	switch at := t.endedAt(); {
	case at != 0:
		took = (at - from) / int64(time.Millisecond)
	case info.EndWall == 0 || c.stepped():
		return
	default:
		took = int64(s.endedAt - c.wall(from))
	}
	bound := info.BoundMs
	if c.stepped() { // the time of a shard that is ahead of the clock goes on at half speed
		bound *= 2
	}
	if took > bound {
		c.accuseLate(ended, t, s.ending.Entry(), "it ended %d ms after the last fault and command, within %d was promised", took, bound)
	}
}

// endedAt returns when the outcome at the end was committed, by the clock of the run; 0 = not known.
func (t *task) endedAt() int64 {
	ending := t.last().ending
	for i := range t.steps {
		if ev := t.steps[i].ev; ev != nil && ev.Position.Ref == ending {
			return t.committed(i)
		}
	}
	return 0
}

// scheduled reports whether the task is a run of a schedule.
func (t *task) scheduled() bool { return t.origin() != 0 }

// origin returns what made the task, if it is a run of a schedule.
func (t *task) origin() events.RunOrigin {
	for i := range t.steps {
		if of := t.steps[i].state.origin; of != 0 {
			return of
		}
	}
	return events.OriginOf(events.TaskID(t.id))
}

// promised reports whether a client was promised a run, of the task, of its schedule, or of the work that it is a
// worker of, or has changes of.
func (t *task) promised() bool {
	return t.scheduled() || len(t.steps) > 0 && t.steps[0].tended || slices.ContainsFunc(t.operations, func(o *history.Operation) bool {
		return o.Answer == history.OK && (o.Verb == history.Submit || o.Verb == history.Retry || o.Verb == history.RunNow)
	})
}

// stuck reports a task that should have run, or ended, by the time given. One that repeats may be on its way.
func (s *state) stuck(by events.Millis) bool {
	switch {
	case s.phase == absent || s.final():
		return false
	case s.phase == running:
		return s.runs == 0 || s.since <= by
	}
	return !s.suspended && s.due <= by
}
