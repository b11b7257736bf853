package record_test

import (
	"testing"

	"taskledger/events"
	"taskledger/projection/record"
)

func TestChain_TakesTheNextEventAlone(t *testing.T) {
	at := record.Chain{Seq: 2, Last: events.RefOf(5, 1)}
	for name, row := range map[string]struct {
		ev   events.Event
		next bool
	}{
		"the next":               {events.Event{Seq: 3, Prev: at.Last, Position: events.Position{Ref: events.RefOf(5, 2)}}, true},
		"a gap":                  {events.Event{Seq: 4, Prev: at.Last, Position: events.Position{Ref: events.RefOf(6, 0)}}, false},
		"the same again":         {events.Event{Seq: 2, Prev: at.Last, Position: events.Position{Ref: events.RefOf(6, 0)}}, false},
		"another predecessor":    {events.Event{Seq: 3, Prev: at.Last - 1, Position: events.Position{Ref: events.RefOf(6, 0)}}, false},
		"no predecessor":         {events.Event{Seq: 3, Position: events.Position{Ref: events.RefOf(6, 0)}}, false},
		"before its predecessor": {events.Event{Seq: 3, Prev: at.Last, Position: events.Position{Ref: events.RefOf(5, 0)}}, false},
	} {
		c := at
		err := c.Follow(&row.ev)
		want := at
		if row.next {
			want = record.Chain{Seq: row.ev.Seq, Last: row.ev.Position.Ref}
		}
		if (err == nil) != row.next || c != want {
			t.Errorf("%s: %+v, %v; want %+v", name, c, err, want)
		}
	}
	if seq, prev := at.Next(); seq != 3 || prev != at.Last {
		t.Errorf("next is %d after %d", seq, prev)
	}
}
