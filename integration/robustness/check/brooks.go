package check

import (
	"strconv"

	"taskledger/events"
	"taskledger/integration/robustness/history"
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

// checkBrook holds that the token of a brook passes no change that does not count, and none of a key that is held apart
// which the hold has not taken.
func (c *checker) checkBrook(j *journal, t *task, ev *events.Event) {
	if t.last().behavior != history.Brook && t.brook.of == nil || j.works.Unknown(ev.Task) {
		return
	}
	switch b := ev.Body.(type) {
	case *events.Created:
		t.brook = brookTask{of: &brook{holds: map[uint32]*brookHold{}}}
		if lead := c.task(string(b.Ties.Parent)); b.Ties.Parent != "" && lead.brook.of != nil {
			t.brook = brookTask{lead.brook.of, events.HoldNumber(b.Ties.Parent, ev.Task)}
		}
	case *events.Deleted:
		if t.brook.hold != 0 {
			delete(t.brook.of.holds, t.brook.hold)
		}
		t.brook = brookTask{}
	case *events.WorkReset:
		if b.What == events.ResetToken {
			t.brook.of.token = brookPlace(b.Token)
		}
	case *events.ChangeHeld:
		t.brook.of.hold(b)
	case *events.HoldMoved:
		if b.Ended {
			delete(t.brook.of.holds, b.Hold)
		}
	case *events.TokenMoved:
		if b.Token != "" && !b.Simulated {
			c.checkBrookMove(t, ev, b)
		}
	}
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

func (c *checker) checkBrookMove(t *task, ev *events.Event, b *events.TokenMoved) {
	s, entry := t.brook.of, ev.Position.Ref.Entry()
	to := brookPlace(b.Token)
	if counted := b.Items.Done + b.Items.Failed + b.Items.Skipped; to < s.token || to-s.token != counted {
		c.accuse(effects, t, entry, "the token moves from %d to %d, and %d changes count", s.token, to, counted)
	}
	for place := s.token + 1; place <= to; place++ {
		for number, h := range s.holds {
			if h.key == history.BrookKey(place) && h.first < place && !h.had[place] {
				c.accuse(effects, t, entry, "the token passes change %d of key %q, which hold %d has not taken, and which is behind change %d there",
					place, h.key, number, h.first)
			}
		}
	}
	s.token = to
}
