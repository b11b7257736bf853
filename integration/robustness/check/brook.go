package check

import (
	"strconv"

	"taskledger/events"
)

// brook is a stream of the traffic as its journal tells it: its changes have the tokens 1, 2, 3 and so on. Nobody records
// which of them were processed, as of those of simulated streams. But each change that the token passes counts once.
type brook struct {
	token uint64
	holds map[uint32]*brookHold // by number
}

// brookHold is a hold of a brook.
type brookHold struct {
	key   string
	first uint64          // change
	had   map[uint64]bool // changes that it has, or had
}

// brookTask says what a task has to do with a brook.
type brookTask struct {
	of   *brook
	hold uint32 // whose task it is; 0 = it is the brook's own
}

func brookPlace(token string) uint64 {
	place, _ := strconv.ParseUint(token, 10, 64) // "" is the beginning
	return place
}

func (s *brook) hold(b *events.ChangeHeld) {
	h := s.holds[b.Hold]
	if h == nil {
		h = &brookHold{
			key:   b.Key,
			first: brookPlace(b.At),
			had:   map[uint64]bool{},
		}
		s.holds[b.Hold] = h
	}
	h.had[brookPlace(b.At)] = true
}
