package check

import (
	"slices"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// cause is the command that an event follows from.
type cause uint8

const (
	byEngine cause = iota
	bySubmit
	byCancel
	byDelete
	byAgain // a submit, a retry or a run-now that gives a task another time
	byMerge // a submit with parameters of its own, or a retry whose parameters were gone
	byJoin  // a submit that shares a task, and brings a request or terms
	bySuspend
	byResume
	byTick  // a tick of a schedule, or one of a backfill, which has a run
	byHand  // a run by hand of a schedule
	byShare // a run by hand that shares another run
	byTerm  // a submit that describes the run which it begins
	causes
)

// cause returns the command that a step follows from.
func (t *task) cause(i int) cause {
	s := &t.steps[i]
	before := new(state)
	if i > 0 {
		before = &t.steps[i-1].state
	}
	if s.ev == nil || s.replaced || s.tended {
		return byEngine
	}
	switch b := s.ev.Body.(type) {
	case *events.Created:
		return causeOfCreation(s.state.origin)
	case *events.CancelRequested:
		return byCancel
	case *events.Failed:
		return before.causeOfFailure(b)
	case *events.Rescheduled:
		if b.At == 0 && before.overdue(s.ev.At) && s.ev.Origin == 0 {
			return byEngine
		}
		if b.At == 0 {
			return byCancel
		}
		if t.promisedRun(i) {
			return byEngine
		}
		return byAgain
	case *events.Merged:
		return byMerge
	case *events.Joined:
		if s.state.origin != 0 {
			return byShare
		}
		return byJoin
	case *events.Suspended:
		return bySuspend
	case *events.Resumed:
		return byResume
	case *events.Deleted:
		return byDelete
	case *events.Described:
		return byTerm
	}
	return byEngine
}

func causeOfCreation(of events.RunOrigin) cause {
	switch of {
	case 0:
		return bySubmit
	case events.RunByHand:
		return byHand
	}
	return byTick
}

// causeOfFailure tells the end of an attempt, and of a task that was lost too often or cancelled before, from a cancel that
// meets a task that waits.
func (s *state) causeOfFailure(b *events.Failed) cause {
	switch code := b.Error.Code; {
	case s.phase == running, s.cancelled, code == events.CodeLost, code == events.CodeDeadline:
		return byEngine
	}
	return byCancel
}

// promisedRun reports whether a Rescheduled is the further run that a merge had promised, due with the end of a run.
func (t *task) promisedRun(i int) bool {
	if i < 2 || t.steps[i-1].entry != t.steps[i].entry || t.steps[i-1].ev == nil {
		return false
	}
	kind := t.steps[i-1].ev.Kind()
	return (kind == events.KindSucceeded || kind == events.KindFailed) && t.steps[i-2].state.rerun
}

// tally counts the commands of one verb.
type tally struct{ ok, unknown int }

func (n tally) most() int { return n.ok + n.unknown }

// checkAcknowledged holds commands against events: what was acknowledged has happened, and what nobody asked for has not.
func (c *checker) checkAcknowledged() {
	for _, t := range c.sorted() {
		if t.known() {
			c.checkCommands(t)
		}
	}
}

func (c *checker) checkCommands(t *task) {
	asked := map[history.Verb]tally{}
	var news tally // submits that made the task
	for _, o := range t.operations {
		n := asked[o.Verb]
		switch o.Answer {
		case history.OK:
			n.ok++
			if o.Verb == history.Submit && !o.Joined {
				news.ok++
			}
		case history.Unknown:
			n.unknown++
			if o.Verb == history.Submit {
				news.unknown++
			}
		}
		asked[o.Verb] = n
	}
	var happened [causes]int
	var last [causes]uint64
	for i := range t.steps {
		by := t.cause(i)
		happened[by]++
		last[by] = t.steps[i].entry
	}
	cancelled := min(asked[history.Cancel].ok, 1)
	if t.replaced() { // by then nothing was left to cancel
		cancelled = 0
	}
	submit, retry, runNow := asked[history.Submit], asked[history.Retry], asked[history.RunNow]
	for _, row := range []struct {
		by    cause
		what  string
		least int // that were acknowledged
		most  int // that were asked for
	}{
		{bySubmit, "Created", max(news.ok, min(submit.ok, 1)), news.most() + retry.most()}, // a retry of what is forgotten begins a life
		{byDelete, "Deleted", asked[history.Delete].ok, asked[history.Delete].most()},
		{byCancel, "events of a cancel", cancelled, asked[history.Cancel].most()},
		{bySuspend, "Suspended", min(asked[history.Suspend].ok, 1), asked[history.Suspend].most()},
		{byResume, "Resumed", 0, asked[history.Resume].most()},
		{byAgain, "Rescheduled", 0, submit.most() + retry.most() + runNow.most()},
		{byMerge, "Merged", 0, submit.most() + retry.most()},
		{byJoin, "Joined", 0, submit.most()},
		{byTerm, "Described", 0, submit.most()},
	} {
		switch n := happened[row.by]; {
		case n < row.least:
			c.accuse(acknowledged, t, 0, "%d %s in the journal, acknowledged commands need %d", n, row.what, row.least)
		case n > row.most:
			c.accuse(acknowledged, t, last[row.by], "%d %s in the journal, asked for were %d", n, row.what, row.most)
		}
	}
	if retry.ok > 0 && happened[bySubmit] <= news.ok && !t.everDue(c.latest, success, failure) {
		c.accuse(acknowledged, t, 0, "a retry was acknowledged, and after no end of a run another one was due")
	}
	if runNow.ok > 0 && !t.everDue(max(c.latest, events.Millis(c.run.Info.EndWall)), created, waiting, success, failure) {
		c.accuse(acknowledged, t, 0, "a run-now was acknowledged, and the task was never due")
	}
	c.checkSuspension(t)
}

// replaced reports whether the schedule of the task has cancelled it, or an owner that tends its work.
func (t *task) replaced() bool {
	return slices.ContainsFunc(t.steps, func(s step) bool { return s.replaced || s.tended && mayCancel(s.ev) })
}

// everDue reports whether the task was in one of the phases and due by a time.
func (t *task) everDue(by events.Millis, phases ...phase) bool {
	for i := range t.steps {
		for _, p := range phases {
			if s := &t.steps[i].state; s.phase == p && s.due != 0 && s.due <= by {
				return true
			}
		}
	}
	return false
}

// checkSuspension holds that a suspend after which nobody tried a resume is in force at the end, and the other way round.
func (c *checker) checkSuspension(t *task) {
	for _, o := range t.operations {
		if o.Answer != history.OK || t.last().phase == absent || t.madeSince(o) {
			continue
		}
		switch {
		case o.Verb == history.Suspend && !t.last().suspended && !t.triedAfter(o, history.Resume, history.Delete):
			c.accuse(acknowledged, t, 0, "a suspend was acknowledged, nobody resumed, and the task is not suspended")
		case o.Verb == history.Resume && t.last().suspended && !t.triedAfter(o, history.Suspend, history.Delete):
			c.accuse(acknowledged, t, 0, "a resume was acknowledged, nobody suspended again, and the task is suspended")
		}
	}
}

// madeSince reports whether an owner may have made the task since an operation, which concerned an earlier life then.
func (t *task) madeSince(o *history.Operation) bool {
	for i := len(t.steps) - 1; i >= 0; i-- {
		if ev := t.steps[i].ev; ev != nil && ev.Kind() == events.KindCreated {
			at := t.committed(i)
			return t.steps[i].tended && (at == 0 || at >= o.Call)
		}
	}
	return false
}

// triedAfter reports whether an operation of one of the verbs may have been done after o had begun.
func (t *task) triedAfter(o *history.Operation, verbs ...history.Verb) bool {
	for _, other := range t.operations {
		for _, v := range verbs {
			if other.Verb == v && (other.Answer == history.Unknown || other.Answer == history.OK && other.Return >= o.Call) {
				return true
			}
		}
	}
	return false
}
