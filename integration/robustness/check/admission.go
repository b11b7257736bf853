package check

import (
	"slices"
	"time"

	"taskledger/integration/robustness/history"
)

// checkAdmission holds that no submit and no schedule adds a task, a run or other parameters while the store is almost full, from when every owner must
// have seen it. What operators ask for is free.
func (c *checker) checkAdmission() {
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

// checkAdded holds that submits and schedules have added nothing to a task in a span.
func (c *checker) checkAdded(t *task, s span) {
	for i := range t.steps {
		by := t.cause(i)
		adds := by == bySubmit || by == byTick || by == byHand || by == byMerge || by == byAgain && t.steps[i-1].state.final()
		if at := c.moment(t, i); adds && at > s.from && at < s.until {
			c.accuse(admission, t, t.steps[i].entry, "%s, %s after the store began to be almost full", t.steps[i].ev.Kind(), time.Duration(at-s.from)+toHear)
		}
	}
}

// operated reports whether an operator may have given the task another run.
func (t *task) operated() bool {
	return slices.ContainsFunc(t.operations, func(o *history.Operation) bool { return o.Verb == history.Retry || o.Verb == history.RunNow })
}
