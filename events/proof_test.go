package events_test

import (
	"errors"
	"reflect"
	"testing"

	"taskledger/events"
)

func TestExcerpt_ProvesTheEventsShownAndNoOthers(t *testing.T) {
	entry, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	for i := range entry.Events {
		x, err := events.NewExcerpt(data, func(ev *events.Event) bool { return ev.Position.Ref.Index() == i })
		if err != nil {
			t.Fatal(err)
		}
		got, err := x.Open()
		if err != nil || got.Hash != entry.Hash || got.Number != entry.Number || len(got.Events) != 1 || got.Events[0].Position != entry.Events[i].Position ||
			got.Events[0].Kind() != entry.Events[i].Kind() || got.Events[0].At != entry.Time || got.Events[0].Caller.Principal != entry.Events[i].Caller.Principal {
			t.Fatalf("event %d alone: %+v, %v", i, got, err)
		}
		for j, o := range got.Origins {
			want := events.Origin{}
			if entry.Events[i].Origin == j+1 {
				want = sampleOrigins[j]
				want.Answers = nil
			}
			if !reflect.DeepEqual(o, want) {
				t.Errorf("event %d alone shows origin %d as %+v, want %+v", i, j, o, want)
			}
		}
		if link := x.Link(); link.After(entry.Prev) != entry.Hash {
			t.Errorf("the link after entry %d leads to %s, want %s", entry.Number-1, link.After(entry.Prev), entry.Hash)
		}
	}
}

func TestExcerpt_DetectsChanges(t *testing.T) {
	entry, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	for name, change := range map[string]func(x *events.Excerpt){
		"header":         func(x *events.Excerpt) { x.Shown[1].Header[5] ^= 1 },
		"payload":        func(x *events.Excerpt) { x.Shown[0].Payload = append(x.Shown[0].Payload, 0) },
		"payload gone":   func(x *events.Excerpt) { x.Shown[0].Payload = nil },
		"another place":  func(x *events.Excerpt) { x.Shown[1].Index++ },
		"beyond":         func(x *events.Excerpt) { x.Shown[1].Index = len(x.Digests) },
		"before":         func(x *events.Excerpt) { x.Shown[1].Index = -1 },
		"repeated":       func(x *events.Excerpt) { x.Shown = append(x.Shown, x.Shown[0]) },
		"digest":         func(x *events.Excerpt) { x.Digests[1][0] ^= 1 },
		"head":           func(x *events.Excerpt) { x.Head = x.Head[1:] },
		"hidden digest":  func(x *events.Excerpt) { x.Digests[len(x.Digests)-1][0] ^= 1 },
		"number":         func(x *events.Excerpt) { x.Digests = x.Digests[:len(x.Digests)-1] },
		"origin":         func(x *events.Excerpt) { x.Origins[0].Header[2] ^= 1 },
		"answers":        func(x *events.Excerpt) { x.Origins[0].Answers[0] ^= 1 },
		"origin gone":    func(x *events.Excerpt) { x.Origins = nil },
		"origin twice":   func(x *events.Excerpt) { x.Origins = append(x.Origins, x.Origins[0]) },
		"origin's place": func(x *events.Excerpt) { x.Origins[0].Index++ },
		"origin before":  func(x *events.Excerpt) { x.Origins[0].Index = -1 },
		"origin beyond":  func(x *events.Excerpt) { x.Origins[0].Index = len(x.Digests) },
		"few digests":    func(x *events.Excerpt) { x.Digests = x.Digests[:1] },
	} {
		x, err := events.NewExcerpt(data, func(ev *events.Event) bool { return ev.Position.Ref.Index() < 2 })
		if err != nil {
			t.Fatal(err)
		}
		change(x)
		if got, err := x.Open(); err == nil && got.Hash == entry.Hash || err != nil && !errors.Is(err, events.ErrDamaged) {
			t.Errorf("%s changed: %v, %v", name, got, err)
		}
	}
	if _, err := events.NewExcerpt(data[1:], func(*events.Event) bool { return true }); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("of a damaged entry: %v", err)
	}
}

func TestHash_TextIsReadAsWritten(t *testing.T) {
	want := events.Hash{1, 2, 0xff}
	var got events.Hash
	if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for _, text := range []string{"", "00", want.String()[1:], want.String() + "0", want.String() + "00", "g" + want.String()[1:]} {
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as a hash", text)
		}
	}
}
