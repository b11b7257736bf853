package record_test

import (
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/projection/record"
)

func TestChain_TakesTheNextEventAlone(t *testing.T) {
	at := record.Chain{Seq: 2, Last: events.RefOf(5, 1)}
	for name, row := range map[string]struct {
		ev   events.Event
		want string // of the error; "" = it is the next one
	}{
		"the next":               {events.Event{Seq: 3, Prev: at.Last, Position: events.Position{Ref: events.RefOf(5, 2)}}, ""},
		"a gap":                  {events.Event{Seq: 4, Prev: at.Last, Position: events.Position{Ref: events.RefOf(6, 0)}}, "sequence 4 follows 2"},
		"the same again":         {events.Event{Seq: 2, Prev: at.Last, Position: events.Position{Ref: events.RefOf(6, 0)}}, "sequence 2 follows 2"},
		"another predecessor":    {events.Event{Seq: 3, Prev: at.Last - 1, Position: events.Position{Ref: events.RefOf(6, 0)}}, "the record's last event is"},
		"no predecessor":         {events.Event{Seq: 3, Position: events.Position{Ref: events.RefOf(6, 0)}}, "predecessor 0"},
		"before its predecessor": {events.Event{Seq: 3, Prev: at.Last, Position: events.Position{Ref: events.RefOf(5, 0)}}, "stands before its predecessor"},
	} {
		c := at
		err := c.Follow(&row.ev)
		want := at
		if row.want == "" {
			want = record.Chain{Seq: row.ev.Seq, Last: row.ev.Position.Ref}
		}
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) || c != want {
			t.Errorf("%s: %+v, %v; want %+v, %q", name, c, err, want, row.want)
		}
	}
	if seq, prev := at.Next(); seq != 3 || prev != at.Last {
		t.Errorf("next is %d after %d", seq, prev)
	}
}
