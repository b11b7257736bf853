package check

import (
	"slices"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// askedBy are the verbs of the operations that an event of a cause may follow from.
var askedBy = [causes][]history.Verb{
	bySubmit:  {history.Submit, history.Retry},
	byJoin:    {history.Submit},
	byTerm:    {history.Submit},
	byMerge:   {history.Submit, history.Retry},
	byAgain:   {history.Submit, history.Retry, history.RunNow},
	byCancel:  {history.Cancel},
	byDelete:  {history.Delete},
	bySuspend: {history.Suspend},
	byResume:  {history.Resume},
	byHand:    {history.RunSchedule},
	byShare:   {history.RunSchedule},
}

// checkCallers holds that each event names who asked for what it follows from, that what a task came to by itself names no caller, and
// that a submit that made its task, and a delete, have an event that names who asked. What must be refused has been.
func (c *checker) checkCallers() {
	for _, t := range c.sorted() {
		for _, o := range t.operations {
			if o.Forbidden != "" && o.Answer == history.OK {
				c.accuse(acknowledged, t, 0, "a %s was acknowledged that breaks a limit: %s", o.Verb, o.Forbidden)
			}
		}
		if t.known() && t.id != string(events.Settings) {
			c.checkCallersOf(t)
		}
	}
}

func (c *checker) checkCallersOf(t *task) {
	for i := range t.steps {
		ev := t.steps[i].ev
		if ev == nil {
			continue
		}
		by := t.cause(i)
		if t.steps[i].tended { // it follows what somebody asked of the work, or of nobody
			continue
		}
		if by == byEngine || by == byTick {
			if ev.Caller.RequestID != "" || ev.Caller.Traceparent != "" {
				c.accuse(acknowledged, t, t.steps[i].entry, "%s (event %d) names a caller, %+v, and nobody asked for it", ev.Kind(), ev.Seq, ev.Caller)
				return
			}
			continue
		}
		asked := func(o *history.Operation) bool {
			return slices.Contains(askedBy[by], o.Verb) && mayHave(o, ev.Caller) && (by != byShare || shares(o, ev))
		}
		if !slices.ContainsFunc(c.askedOf(t, by), asked) {
			c.accuse(acknowledged, t, t.steps[i].entry, "%s (event %d) names %+v, who did not ask for it", ev.Kind(), ev.Seq, ev.Caller)
			return
		}
	}
	for _, o := range t.operations {
		if o.Answer != history.OK || o.Caller == (events.Caller{}) || o.Verb != history.Delete && (o.Verb != history.Submit || o.Joined) {
			continue
		}
		by := bySubmit
		if o.Verb == history.Delete {
			by = byDelete
		}
		if !t.names(by, o.Caller) {
			c.accuse(acknowledged, t, 0, "a %s of %+v was acknowledged, and no event that follows from one names him", o.Verb, o.Caller)
			return
		}
	}
}

// askedOf returns the operations from which events of a cause may follow. Of a schedule are asked its runs by hand, and
// shares in a run.
func (c *checker) askedOf(t *task, by cause) []*history.Operation {
	if by != byHand && by != byShare {
		return t.operations
	}
	if s := c.schedules[events.TaskID(t.id).Affinity()]; s != nil {
		return s.operations
	}
	return nil
}

// shares reports whether the key of a run by hand is the one of an event of the run that it shares.
func shares(o *history.Operation, ev *events.Event) bool {
	request := events.TaskOfRequest(ev.Caller.Principal, ev.Task.Affinity(), o.Request)
	return o.Request != "" && ev.RequestID == string(request)
}

// names reports whether an event of a cause names who asked.
func (t *task) names(by cause, caller events.Caller) bool {
	for i := range t.steps {
		if ev := t.steps[i].ev; ev != nil && t.cause(i) == by && ev.Caller == caller {
			return true
		}
	}
	return false
}

// mayHave reports whether an operation may have asked for an event that names this caller. Who asked is not known of what was typed, by
// clients that give no trace.
func mayHave(o *history.Operation, caller events.Caller) bool {
	switch {
	case o.Answer != history.OK && o.Answer != history.Unknown:
		return false
	case o.Caller == (events.Caller{}):
		return caller.RequestID == "" && caller.Traceparent == ""
	}
	return o.Caller == caller
}
