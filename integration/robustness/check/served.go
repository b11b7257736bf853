package check

import "taskledger/integration/robustness/history"

// checkServed compares what the owners showed with the fold. A task that goes on may have gone on since.
func (c *checker) checkServed() {
	shown := map[string]bool{}
	for i := range c.run.Served {
		s := &c.run.Served[i]
		t := c.task(s.Task)
		switch {
		case !t.known():
		case shown[s.Task]:
			c.accuse(served, t, 0, "shown twice")
		default:
			c.compareServed(t, s)
		}
		shown[s.Task] = true
	}
	for _, t := range c.sorted() {
		if t.known() && t.last().phase != absent && !shown[t.id] {
			c.accuse(served, t, 0, "not shown by its owner, the journal has it %s", t.last().phase)
		}
	}
}

func (c *checker) compareServed(t *task, s *history.Served) {
	want := t.last()
	if s.Seq < want.seq && !want.final() {
		for i := len(t.steps) - 1; i >= 0 && t.steps[i].state.seq >= s.Seq; i-- {
			want = &t.steps[i].state
		}
	}
	if s.Seq != want.seq || s.Status != want.phase.status() || s.Attempt != want.attempt || s.Runs != want.runs || !want.shows(s.Outcome) {
		c.accuse(served, t, 0, "its owner showed %s after event %d, attempt %d, %d runs, outcome %.60q; the journal leads to %s after event %d, attempt %d, %d runs, outcome %.60q",
			s.Status, s.Seq, s.Attempt, s.Runs, s.Outcome, want.phase, want.seq, want.attempt, want.runs, want.outcome)
		return
	}
	if s.Whole && (s.Suspended != want.suspended || s.Due != want.due || s.Failures != want.failures || s.Lost != want.lost) {
		c.accuse(served, t, 0, "its owner showed it suspended %t, due %d, with %d failures and %d losses; the journal leads to %t, %d, %d and %d",
			s.Suspended, s.Due, s.Failures, s.Lost, want.suspended, want.due, want.failures, want.lost)
		return
	}
	if s.Whole && (s.Creator != want.creator || s.LastNode != want.lastNode || s.WaitCause != want.cause || s.WaitSince != want.waits || s.SuspendedAt != want.suspendedAt) {
		c.accuse(served, t, 0, "its owner showed it created by %q, last on %q, waiting for %q since %d, suspended at %d; the journal leads to %q, %q, %q, %d and %d",
			s.Creator, s.LastNode, s.WaitCause, s.WaitSince, s.SuspendedAt, want.creator, want.lastNode, want.cause, want.waits, want.suspendedAt)
		return
	}
	if s.Terms != "" && s.Terms != want.terms() {
		c.accuse(served, t, 0, "its owner showed it with %s; the journal leads to %s", s.Terms, want.terms())
		return
	}
	if word, since := want.substatus(s.Looked); s.Substatus != "" && (s.Substatus != word || s.Since != since) {
		c.accuse(served, t, 0, "its owner showed it %s since %d at %d; the journal leads to %s since %d", s.Substatus, s.Since, s.Looked, word, since)
	}
}

// elided is the size of results, with the byte that names their codec, beyond which a list shows them empty.
const elided = 1 << 10

// shows reports whether an outcome is the one of the state. That of a run that will be repeated or tried again may be left
// out, and so may a long result.
func (s *state) shows(outcome string) bool {
	return outcome == s.outcome || outcome == "" && !s.final() || outcome == "=" && s.phase == success && len(s.outcome) > elided
}
