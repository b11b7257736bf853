package check

import (
	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// checkFutures holds that waits and reads tell outcomes that the task's journal has, and that waits tell one.
func (c *checker) checkFutures() {
	for _, t := range c.sorted() {
		if !t.known() {
			continue
		}
		ends, tries := t.outcomes()
		for _, o := range t.operations {
			switch {
			case o.Verb == history.Wait && o.Answer == history.Untold && (t.last().phase == absent || t.last().final()):
				c.accuse(futures, t, 0, "client %d was told no outcome, and the task is %s: %s", o.Client, t.last().phase, o.Error)
			case o.Answer != history.OK:
			case o.Verb == history.Wait && !ends[o.Outcome]:
				c.accuse(futures, t, 0, "client %d was told outcome %.60q; no run ended so", o.Client, o.Outcome)
			case o.Verb == history.Get && o.Outcome != "" && !tries[o.Outcome]:
				c.accuse(futures, t, 0, "client %d read outcome %.60q; no attempt ended so", o.Client, o.Outcome)
			}
		}
	}
}

// outcomes returns those with which runs of the task ended, and those of its attempts.
func (t *task) outcomes() (ends, tries map[string]bool) {
	ends, tries = map[string]bool{}, map[string]bool{}
	for i := range t.steps {
		if outcome, ok := t.endOfRun(i); ok {
			ends[outcome] = true
		}
		s := &t.steps[i].state
		tries[s.outcome] = true
		if s.shows("=") {
			tries["="] = true
		}
	}
	return ends, tries
}

// endOfRun returns the outcome that futures are told because of a step. A repetition that is taken away ends a run that
// never began.
func (t *task) endOfRun(i int) (string, bool) {
	s := &t.steps[i]
	if s.ev == nil {
		return "", false
	}
	switch b := s.ev.Body.(type) {
	case *events.Succeeded:
		return s.state.outcome, true
	case *events.Failed:
		return s.state.outcome, b.Run != 0
	case *events.Rescheduled:
		if b.At == 0 && s.state.phase == success {
			return "!" + events.CodeCancelled, true
		}
		return s.state.outcome, b.At == 0 && s.state.phase == failure
	}
	return "", false
}
