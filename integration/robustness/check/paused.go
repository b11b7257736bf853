package check

import (
	"time"

	"taskledger/events"
)

// checkPaused holds that nothing starts that is paused, from when every node must have heard of the pause until its end: whatever
// becomes of nodes meanwhile, and whoever comes.
func (c *checker) checkPaused() {
	if !c.timed() {
		return
	}
	disturbed := c.disturbed()
	all := c.pauses()
	for behavior, pauses := range all {
		for i := range pauses {
			pauses[i].from = heardBy(pauses[i].from, disturbed)
		}
		all[behavior] = pauses
	}
	for _, t := range c.sorted() {
		for i := range t.steps {
			if !t.known() || t.steps[i].ev == nil || t.steps[i].ev.Kind() != events.KindStarted {
				continue
			}
			at := c.moment(t, i)
			for _, p := range all[t.steps[i].state.behavior] {
				if at > p.from && at < p.until {
					c.accuseLate(paused, t, t.steps[i].entry, "attempt %d started %s before the end of a pause of %s that every node had heard of %s before",
						t.steps[i].state.attempt, time.Duration(p.until-at), t.steps[i].state.behavior, time.Duration(at-p.from))
				}
			}
		}
	}
}

// heardBy returns when every node has heard of what was committed: some time without faults later.
func heardBy(committed int64, disturbed []span) (by int64) {
	by = committed + int64(toHear)
	for again := true; again; {
		again = false
		for _, d := range disturbed {
			if d.from < by && d.until > by-int64(toHear) {
				by, again = d.until+int64(toHear), true
			}
		}
	}
	return by
}
