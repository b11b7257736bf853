package check

import (
	"taskledger/events"
	"taskledger/integration/robustness/history"
)

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
