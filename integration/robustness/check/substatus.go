package check

import (
	"strings"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// substatus is the second word beside the status at a time, and since when it holds, as docs and help describe the words.
func (s *state) substatus(now events.Millis) (word string, since events.Millis) {
	since = s.waits
	if since == 0 && s.phase == created {
		since = s.made
	} else if since == 0 {
		since = s.endedAt
	}
	switch {
	case s.phase == running:
		return "running", s.since
	case s.final() && s.outcome == "!"+events.CodeCancelled:
		return "cancelled", since
	case s.final():
		return "final", since
	case s.suspended:
		return "suspended", s.suspendedAt
	case s.due <= now:
		return "ready", max(since, s.due)
	case s.phase == waiting:
		return strings.ToLower(s.cause), since
	case s.phase == failure && !s.runEnded:
		return "retry", since
	}
	return "scheduled", since
}

// showsMore reports whether the terms and the word that a read showed are those of the state, as far as they are known.
func (s *state) showsMore(o *history.Operation) bool {
	if o.Terms != "" && o.Terms != s.terms() {
		return false
	}
	word, since := s.substatus(o.Looked)
	return o.Substatus == "" || o.Substatus == word && o.Since == since
}
