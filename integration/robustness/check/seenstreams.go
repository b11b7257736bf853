package check

import (
	"fmt"

	"taskledger/events"
)

// SeenStreams counts what streams did.
type SeenStreams struct {
	Changes  int // that were processed, each as often as it was
	Messages int // that were acknowledged
	Tokens   int // that moved
	Resets   int // tokens that somebody set
	Holds    int // that began
	Followed int // changes that went into a hold after the first one
	Ended    int // holds
}

func (s *SeenStreams) add(o SeenStreams) {
	s.Changes += o.Changes
	s.Messages += o.Messages
	s.Tokens += o.Tokens
	s.Resets += o.Resets
	s.Holds += o.Holds
	s.Followed += o.Followed
	s.Ended += o.Ended
}

// String tells it.
func (s SeenStreams) String() string {
	return fmt.Sprintf("%d changes of streams, %d messages acknowledged; tokens: %d moved, %d set; %d holds, which %d changes followed, of which %d ended",
		s.Changes, s.Messages, s.Tokens, s.Resets, s.Holds, s.Followed, s.Ended)
}

// count counts an event.
func (s *SeenStreams) count(body events.Body) {
	switch b := body.(type) {
	case *events.TokenMoved:
		if b.Token != "" && !b.Simulated {
			s.Tokens++
		}
	case *events.WorkReset:
		if b.What == events.ResetToken {
			s.Resets++
		}
	case *events.ChangeHeld:
		if b.Code == "" {
			s.Followed++
		} else {
			s.Holds++
		}
	case *events.HoldMoved:
		if b.Ended {
			s.Ended++
		}
	}
}
