package earlier

import (
	"unique"

	"taskledger/events"
)

// Search goes back through the events of a task for what is known at one of them.
type Search struct {
	Known
	Next    events.Ref // the event to read; 0 = the search is over
	Attempt bool       // whether one runs, and where, has been found out
	told    bool       // the behavior was found out before, or could not be
}

// Begin returns a search from an event back, of which nothing is known.
func Begin(next events.Ref) Search { return Search{Known: nothing, Next: next} }

// From returns a search from where this is known on back.
func From(k Known, met bool) Search { return Search{Known: k, Attempt: met, told: met} }

// Behavior takes in the behavior as somebody else tells it.
func (s *Search) Behavior(is string) { s.behavior = unique.Make(is) }

// Take takes in an event that came before all that were taken in.
func (s *Search) Take(ev *events.Event) {
	switch b := ev.Body.(type) {
	case *events.Created:
		s.behavior, s.Attempt = unique.Make(b.Behavior), true
	case *events.Started:
		if !s.Attempt {
			s.node, s.Attempt = unique.Make(b.Node), true
		}
	}
	s.Attempt = s.Attempt || endsAttempt(ev.Kind())
	s.goOn(ev)
}

// Pass goes back past an event: from what is known after it to what is known before it.
func (s *Search) Pass(ev *events.Event) {
	switch b := ev.Body.(type) {
	case *events.Started:
		s.node, s.Attempt = noText, true
	case *events.Lost:
		s.node, s.Attempt = unique.Make(b.Node), true
	case *events.Released:
		s.node, s.Attempt = unique.Make(b.Node), true
	default:
		if endsAttempt(ev.Kind()) {
			s.node, s.Attempt = noText, false
		}
	}
	s.goOn(ev)
}

// goOn goes on with the event before, unless all has been found out.
func (s *Search) goOn(ev *events.Event) {
	if s.Next = ev.Prev; s.Attempt && (s.told || s.behavior != noText) {
		s.Next = 0
	}
}
