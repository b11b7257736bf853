package check

import (
	"slices"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// checkBraked holds that no submit adds a task, a run or other parameters while the store is almost full, from when every owner must
// have seen it. What operators ask for is free.
func (c *checker) checkBraked() {
	if !c.timed() {
		return
	}
	for i := range c.run.Faults {
		f := &c.run.Faults[i]
		if f.Kind != history.AlmostFullKind {
			continue
		}
		seen := span{f.From + int64(toHear), f.Until}
		for _, t := range c.sorted() {
			if t.known() && !t.operated() {
				c.checkAdded(t, seen)
			}
		}
	}
}

// heldRepetitions returns when repetitions may wait because the load had filled the store, with the time that owners take
// to see that it holds less.
func (c *checker) heldRepetitions() (all []span) {
	for _, s := range c.run.Info.Filled {
		all = append(all, span{s.From, s.Until + c.felt()})
	}
	return all
}

// dueAfterTheBrake returns when a task is due, at the earliest: a repetition that the brake meets before it is late is
// due when owners know that the store has room again.
func (c *checker) dueAfterTheBrake(s *state, late events.Millis) events.Millis {
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

// checkAdded holds that submits have added nothing to a task in a span.
func (c *checker) checkAdded(t *task, s span) {
	for i := range t.steps {
		by := t.cause(i)
		adds := by == bySubmit || by == byMerge || by == byAgain && t.steps[i-1].state.final()
		if at := c.moment(t, i); adds && at > s.from && at < s.until {
			c.accuse(braked, t, t.steps[i].entry, "%s, %s after the store began to be almost full", t.steps[i].ev.Kind(), time.Duration(at-s.from)+toHear)
		}
	}
}

// operated reports whether an operator may have given the task another run.
func (t *task) operated() bool {
	return slices.ContainsFunc(t.operations, func(o *history.Operation) bool { return o.Verb == history.Retry || o.Verb == history.RunNow })
}
