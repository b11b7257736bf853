package check

import (
	"strings"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// delaySlack bounds the differences between the moments of a client, a function and an owner that concern one wait.
const delaySlack = time.Second

// stepped reports whether a wall clock was wrong: then times of several processes do not compare.
func (c *checker) stepped() bool {
	for _, f := range c.run.Faults {
		if strings.Contains(f.Kind, "clock") {
			return true
		}
	}
	return false
}

// checkWait holds that the next attempt or run waits for as long as the call asked, whose outcome the step records.
// Both times come from one entry, and compare whatever the clocks show.
func (c *checker) checkWait(t *task, s *step, x *history.Execution) {
	next := s.next()
	if next == 0 {
		return
	}
	if x.Wait == 0 {
		if at := s.state.repetition(s.ev.At); s.state.policy.Every != 0 && s.state.phase == success && next != at {
			c.accuse(once, t, s.entry, "attempt %d is followed by another run at %d, its policy says %d", x.Attempt, next, at)
		}
		return
	}
	switch wait, asked := time.Duration(next-s.ev.At)*time.Millisecond, time.Duration(x.Wait); {
	case wait < asked:
		c.accuse(once, t, s.entry, "attempt %d is followed after %s, and asked for a wait of %s", x.Attempt, wait, asked)
	case wait > asked+delaySlack:
		c.accuse(ended, t, s.entry, "attempt %d is followed after %s, and asked for a wait of %s", x.Attempt, wait, asked)
	}
}

// next returns when the outcome of a step is followed by another attempt or run; 0 = never.
func (s *step) next() events.Millis {
	switch b := s.ev.Body.(type) {
	case *events.Succeeded:
		return b.Next
	case *events.Failed:
		if b.Run == 0 {
			return b.Next
		}
	}
	return 0
}

// checkDelays holds that a submitted task waits as long as its submit asked for, and a failed one at most as long as
// its policy says.
func (c *checker) checkDelays() {
	if c.stepped() {
		return
	}
	for _, t := range c.sorted() {
		if !t.known() {
			continue
		}
		for i := range t.steps {
			if t.steps[i].ev == nil {
				continue
			}
			switch b := t.steps[i].ev.Body.(type) {
			case *events.Created:
				c.checkDelay(t, &t.steps[i], b)
				if i == 0 && b.Ties == (events.Ties{}) {
					c.checkDescribed(t, &t.steps[i])
				}
			case *events.Failed:
				if limit := t.steps[i].state.policy.Backoff.Max + delaySlack; b.Run == 0 && b.Next > t.steps[i].ev.At.Add(limit) {
					c.accuse(ended, t, t.steps[i].entry, "tries again %d ms after a failure, its policy allows %s", b.Next-t.steps[i].ev.At, t.steps[i].state.policy.Backoff.Max)
				}
			}
		}
	}
}

// checkDescribed holds that a task which one submit alone can have made has its tags, and its run that deadline.
func (c *checker) checkDescribed(t *task, s *step) {
	var asked *history.Operation
	for _, o := range t.operations {
		if o.Verb == history.Submit && asked != nil || o.Verb == history.Retry {
			return
		}
		if o.Verb == history.Submit {
			asked = o
		}
	}
	if asked == nil || asked.Answer != history.OK {
		return
	}
	is := events.Described{}
	for i := range t.steps {
		ev := t.steps[i].ev
		if ev == nil || t.steps[i].entry != s.entry {
			continue
		}
		if b, described := ev.Body.(*events.Described); described {
			is = *b
		}
	}
	if is.Deadline != asked.Deadline || strings.Join(is.Tags, " ") != asked.Tags {
		c.accuse(acknowledged, t, s.entry, "made with the deadline %d and the tags %q, its submit asked for %d and %q",
			is.Deadline, is.Tags, asked.Deadline, asked.Tags)
	}
}

// checkDelay compares the time of a task with the submits that may have made it.
func (c *checker) checkDelay(t *task, s *step, b *events.Created) {
	var longest time.Duration
	var submits []*history.Operation
	for _, o := range t.operations {
		if o.Verb == history.Submit && (o.Answer == history.OK || o.Answer == history.Unknown) {
			longest = max(longest, time.Duration(o.Delay))
			submits = append(submits, o)
		}
	}
	if len(submits) == 0 { // nobody has recorded who made it
		return
	}
	if b.NotBefore > s.ev.At.Add(longest+delaySlack) {
		c.accuse(ended, t, s.entry, "due %d ms after it was made, its submits asked for %s at most", b.NotBefore-s.ev.At, longest)
	}
	if o := submits[0]; len(submits) == 1 && o.Delay > 0 && c.run.Info.EndWall != 0 {
		if least := c.wall(o.Call).Add(time.Duration(o.Delay) - delaySlack/10); b.NotBefore < least {
			c.accuse(once, t, s.entry, "due %d ms before the time that its submit asked for", least-b.NotBefore)
		}
	}
}

// wall is a time of the run by the wall clock; Info.EndWall must be known.
func (c *checker) wall(at int64) events.Millis {
	return events.Millis(c.run.Info.EndWall - (c.run.Info.End-at)/int64(time.Millisecond))
}
