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
		maker, made := t.firstRun()
		for _, o := range t.operations {
			switch {
			case o.Verb == history.Wait && o.Answer == history.Untold && (t.last().phase == absent || t.last().final()):
				c.accuse(futures, t, 0, "client %d was told no outcome, and the task is %s: %s", o.Client, t.last().phase, o.Error)
			case o.Answer != history.OK:
			case o.Verb == history.Wait && !ends[o.Outcome]:
				c.accuse(futures, t, 0, "client %d was told outcome %.60q; no run ended so", o.Client, o.Outcome)
			case o.Verb == history.Wait && maker != "" && o.Request == maker && o.Outcome != made:
				c.accuse(futures, t, 0, "client %d was told outcome %.60q; the run that its request made ended with %.60q",
					o.Client, o.Outcome, made)
			case o.Verb == history.Get && o.Outcome != "" && !tries[o.Outcome]:
				c.accuse(futures, t, 0, "client %d read outcome %.60q; no attempt ended so", o.Client, o.Outcome)
			}
		}
	}
}

// firstRun returns the request that made the task, and how its run ended, whatever ran after it; "" where there was
// another life, or no such request or end.
func (t *task) firstRun() (request, outcome string) {
	for i := range t.steps {
		ev := t.steps[i].ev
		switch {
		case ev == nil:
		case ev.Kind() == events.KindCreated && i > 0 || ev.Kind() == events.KindDeleted:
			return "", ""
		case i == 0 && ev.RequestID != "":
			request = events.RequestKey(ev.RequestID)
		}
	}
	for i := range t.steps {
		if outcome, ended := t.endOfRun(i); ended {
			return request, outcome
		}
	}
	return "", ""
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
