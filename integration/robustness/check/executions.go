package check

import (
	"cmp"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// checkExecutions holds every call of a function against the Started that caused it, and every outcome of an attempt
// against the call that reported it.
func (c *checker) checkExecutions() {
	for _, t := range c.sorted() {
		if !t.known() {
			continue
		}
		byToken := c.tokens(t)
		c.checkOverlaps(t, byToken)
		for i := range t.steps {
			if i > 0 && t.steps[i].ev != nil && t.steps[i-1].state.phase == running {
				c.checkOutcome(t, &t.steps[i-1].state, &t.steps[i], byToken)
			}
		}
	}
}

// tokens returns the calls by the Started that they name, those left out that name none.
func (c *checker) tokens(t *task) map[events.Ref]*history.Execution {
	starts, tries, times := map[events.Ref]*events.Started{}, map[events.Ref]*step{}, map[events.Ref]int64{}
	for i := range t.steps {
		if ev := t.steps[i].ev; ev != nil {
			if b, ok := ev.Body.(*events.Started); ok {
				starts[ev.Position.Ref], tries[ev.Position.Ref] = b, &t.steps[i]
				times[ev.Position.Ref] = t.committed(i)
			}
		}
	}
	byToken := make(map[events.Ref]*history.Execution, len(t.executions))
	for _, x := range t.executions {
		b := starts[x.Token.Ref]
		switch {
		case c.run.Info.Read != 0 && x.Begin > c.run.Info.Read && x.Token.Ref.Entry() > t.shard.last():
			// What a client gave up may be decided after the journals were read, until nodes are stopped.
		case b == nil || int(x.Token.Shard) != t.shard.shard:
			c.accuse(effects, t, x.Token.Ref.Entry(), "%s ran attempt %d with token %s, where no attempt of the task was started", x.Node, x.Attempt, x.Token)
		case b.Node != x.Node || b.Attempt != x.Attempt:
			c.accuse(effects, t, x.Token.Ref.Entry(), "%s ran attempt %d with token %s, which is of attempt %d on %s", x.Node, x.Attempt, x.Token, b.Attempt, b.Node)
		case x.Begin < times[x.Token.Ref]:
			c.accuse(effects, t, x.Token.Ref.Entry(), "attempt %d, token %s, began %d ns before its Started was committed", x.Attempt, x.Token, times[x.Token.Ref]-x.Begin)
		case x.Try != 0 && x.Try != tries[x.Token.Ref].try && !t.firstTry(x, tries[x.Token.Ref]):
			c.accuse(effects, t, x.Token.Ref.Entry(), "attempt %d, token %s, was told to be try %d of its run, and is try %d",
				x.Attempt, x.Token, x.Try, tries[x.Token.Ref].try)
		case byToken[x.Token.Ref] != nil:
			c.accuse(effects, t, x.Token.Ref.Entry(), "attempt %d, token %s, was run twice", x.Attempt, x.Token)
		default:
			byToken[x.Token.Ref] = x
		}
	}
	return byToken
}

// firstTry reports whether a call was told to be the first try because a bucket of its work had ended before it began.
func (t *task) firstTry(x *history.Execution, started *step) bool {
	return x.Try == 1 && started.anew != 0 && t.shard.entries[started.anew-1].at <= x.Begin
}

// checkOverlaps holds that a call that goes on when a later one begins is of an attempt that was given up.
func (c *checker) checkOverlaps(t *task, byToken map[events.Ref]*history.Execution) {
	calls := make([]*history.Execution, 0, len(byToken))
	for _, x := range byToken {
		calls = append(calls, x)
	}
	slices.SortFunc(calls, func(a, b *history.Execution) int { return cmp.Compare(a.Token.Ref, b.Token.Ref) })
	for i := 1; i < len(calls); i++ {
		a, b := calls[i-1], calls[i]
		if a.End != 0 && b.Begin < a.End && !t.gaveUp(a) {
			c.accuse(effects, t, b.Token.Ref.Entry(), "attempt %d began on %s before attempt %d had returned on %s, and nobody had given that up",
				b.Attempt, b.Node, a.Attempt, a.Node)
		}
	}
}

// outlives is the least time that a call has run which is released while it runs: a drain gives it so long after it has
// ended its context.
const outlives = 10 * time.Second

// gaveUp reports whether the attempt of a call was ended without waiting for the call.
func (t *task) gaveUp(x *history.Execution) bool {
	for i := range t.steps {
		s := &t.steps[i]
		if s.ev == nil || i == 0 || t.steps[i-1].state.started != x.Token.Ref || t.steps[i-1].state.phase != running {
			continue
		}
		switch b := s.ev.Body.(type) {
		case *events.Lost:
			return true
		case *events.Released: // it has returned or will never be made, unless it outlived the drain of its node
			return t.committed(i)-x.Begin >= int64(outlives)
		case *events.Failed:
			return "!"+b.Error.Code != x.Outcome
		}
	}
	return false
}

// checkOutcome holds the outcome of an attempt against what its call reported.
func (c *checker) checkOutcome(t *task, before *state, s *step, byToken map[events.Ref]*history.Execution) {
	x := byToken[before.started]
	if x != nil && x.Outcome == s.state.outcome {
		c.checkWait(t, s, x)
	}
	switch b := s.ev.Body.(type) {
	case *events.Succeeded:
		if x == nil || x.Outcome != s.state.outcome {
			c.accuse(effects, t, s.entry, "attempt %d succeeded with %.60q, %s", before.attempt, s.state.outcome, reported(x))
		}
	case *events.Failed:
		switch {
		case x != nil && x.Outcome == s.state.outcome && x.Final && b.Run == 0:
			c.accuse(effects, t, s.entry, "attempt %d failed with %q for good, and is tried again", before.attempt, b.Error.Code)
		case x != nil && x.Outcome == s.state.outcome && before.givesUp(x, b, s.ev.At):
			c.accuse(effects, t, s.entry, "attempt %d failed with %q, asked for another one after %d failures of at most %d, and gets none",
				before.attempt, b.Error.Code, before.tries()+1, before.policy.MaxAttempts)
		case x != nil && x.Outcome == s.state.outcome, before.engineFails(&b.Error, x):
		default:
			c.accuse(effects, t, s.entry, "attempt %d failed with %q, %s", before.attempt, b.Error.Code, reported(x))
		}
	}
}

// givesUp reports whether a failure ends the run although its call asked for a further attempt, which the policy
// allows. An owner ends the task of a work with its own code, which may be that of the call as well, and no attempt
// follows whose time would be after the deadline of the run.
func (s *state) givesUp(x *history.Execution, b *events.Failed, at events.Millis) bool {
	byOwner := s.cancelled || s.works && endsWork(&b.Error) || s.deadline != 0 && s.deadline <= at.Add(s.policy.Backoff.Max+time.Duration(x.Wait))
	return !x.Final && b.Run != 0 && !byOwner && int(s.tries())+1 < s.policy.MaxAttempts
}

// asksFor returns how long the task is left alone, at least and at most, once the call of an attempt gives that back.
func (t *task) asksFor(started events.Ref) (least, most time.Duration) {
	for _, x := range t.executions {
		if x.Token.Ref == started && x.Releases {
			return time.Duration(x.Wait), time.Duration(x.Wait) + delaySlack
		}
	}
	return 0, 0
}

func reported(x *history.Execution) string {
	switch {
	case x == nil:
		return "nothing ran"
	case x.Outcome == "":
		return "its function reported nothing"
	}
	return "its function reported " + x.Outcome[:min(len(x.Outcome), 60)]
}

// engineFails reports whether the engine itself may fail an attempt of this state with an error.
func (s *state) engineFails(e *events.Error, x *history.Execution) bool {
	if s.works && endsWork(e) {
		return true
	}
	switch e.Code {
	case events.CodeCancelled:
		return s.cancelled
	case events.CodeTimeout:
		return s.policy.Timeout > 0
	case events.CodeDeadline:
		return s.deadline != 0
	case events.CodePanic:
		return x != nil && x.Outcome == ""
	case events.CodeRejected:
		return x == nil || x.Outcome != "" && x.Outcome[0] == '='
	case events.CodeFailed: // it did not return after its context had ended, or only to say so
		return x != nil && x.Outcome == ""
	}
	return false
}
