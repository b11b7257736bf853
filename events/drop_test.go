package events_test

import (
	"bytes"
	"testing"

	"taskledger/events"
)

func TestDropAfter_LeavesTheEntryAsItWas(t *testing.T) {
	var b, plain events.Builder
	b.Reset(sampleHead())
	plain.Reset(sampleHead())
	for _, o := range sampleOrigins {
		b.AddOrigin(o)
		plain.AddOrigin(o)
	}
	all := samples()
	for i, ev := range all {
		plain.Add(ev)
		b.Add(ev)
		m, size := b.Mark(), b.Size()
		for _, other := range all[:1+i%3] {
			b.Add(other)
		}
		if b.DropAfter(m); b.Size() != size || len(b.Entry.Events) != i+1 {
			t.Errorf("after event %d: %d events of %d bytes, want %d of %d", i, len(b.Entry.Events), b.Size(), i+1, size)
		}
	}
	want, err := plain.Seal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Seal()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("sealed as\n%x, %v; want\n%x", got, err, want)
	}
}

// What Holds lets pass Seal takes.
func TestHolds_RefusesWhatSealWouldRefuse(t *testing.T) {
	var b events.Builder
	for name, ev := range map[string]events.Event{
		"task":    {Task: "a b", Seq: 1, Body: &events.Deleted{}},
		"origin":  {Task: "a", Seq: 1, Origin: 1, Body: &events.Deleted{}},
		"payload": {Task: "a", Seq: 1, Body: &events.Merged{Params: make(events.Payload, events.MaxPayloadBytes+2)}},
	} {
		b.Reset(sampleHead())
		if ev.Origin == 0 {
			b.Add(ev)
		} else {
			ev.Origin = 0
			b.Add(ev).Origin = 1
		}
		if b.Holds() == nil {
			t.Errorf("%s: it can be stored", name)
		}
		if _, err := b.Seal(); err == nil {
			t.Errorf("%s: it is sealed", name)
		}
	}
	b.Reset(sampleHead())
	large := events.Event{Task: "a", Seq: 1, Body: &events.Merged{Params: make(events.Payload, events.MaxPayloadBytes)}}
	for n := 1; n <= events.MaxEntryBytes/events.MaxPayloadBytes; n++ {
		m := b.Mark()
		b.Add(large)
		if fits := n < events.MaxEntryBytes/events.MaxPayloadBytes; (b.Holds() == nil) != fits {
			t.Errorf("%d payloads of %d bytes: %v", n, events.MaxPayloadBytes, b.Holds())
		} else if !fits {
			b.DropAfter(m)
		}
	}
	if _, err := b.Seal(); err != nil {
		t.Errorf("what can be stored is refused: %v", err)
	}
}
