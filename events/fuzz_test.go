package events_test

import (
	"crypto/sha256"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/testkit"
)

var legalID = regexp.MustCompile(`^[A-Za-z0-9._:-]+(/[A-Za-z0-9._:-]+)?$`)

// isLegalID holds the rules of ids once more: one or two sides of legal bytes, none of which is a step in a path.
func isLegalID(text string) bool {
	for side := range strings.SplitSeq(text, "/") {
		if side == "." || side == ".." {
			return false
		}
	}
	return len(text) <= events.MaxIDBytes && legalID.MatchString(text)
}

// FuzzText reads any text as each of the vocabulary's texts: what is accepted is written and read again as the same.
func FuzzText(f *testing.F) {
	for _, text := range []string{"orders/purge", "purge-table", "3.42.7", "65535.17592186044415.1048575", "2023-11-14T22:13:20.123Z",
		"2023-11-14T23:13:20+01:00", events.Hash{1, 31: 2}.String(), "-1.1.1", "1.1", "9999-12-31T23:59:59.999Z", "", ".", "a/.."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id := events.TaskID(text)
		if got, want := id.Validate() == nil, isLegalID(text); got != want {
			t.Errorf("task id %q: legal is %t, want %t", text, got, want)
		}
		if shard := id.Shard(16); shard < 0 || shard > 15 || events.TaskID(id.Affinity()+"/x").Shard(16) != shard {
			t.Errorf("task id %q: shard %d of 16", text, shard)
		}
		if events.ValidateBehavior(text) == nil && id.Validate() != nil {
			t.Errorf("behavior %q is no token", text)
		}
		again(t, text, new(events.Position), new(events.Position))
		again(t, text, new(events.Hash), new(events.Hash))
		again(t, text, new(events.Millis), new(events.Millis))
	})
}

type textual interface {
	MarshalText() ([]byte, error)
	UnmarshalText([]byte) error
}

// again checks that what is read from text is written and read again as the same.
func again(t *testing.T, text string, first, second textual) {
	t.Helper()
	if first.UnmarshalText([]byte(text)) != nil {
		return
	}
	written, err := first.MarshalText()
	if err != nil || second.UnmarshalText(written) != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("%q is read as %v, written as %q, %v, and read as %v", text, first, written, err, second)
	}
}

// FuzzExcerpt opens any excerpt: errors wrap ErrDamaged, and the hash of an entry is that of its own events alone.
func FuzzExcerpt(f *testing.F) {
	entry, data := seal(f, sampleHead(), sampleOrigins, samples()...)
	for i := range entry.Events {
		x, err := events.NewExcerpt(data, func(ev *events.Event) bool { return ev.Position.Ref.Index() == i })
		if err != nil {
			f.Fatal(err)
		}
		var asked events.ShownOrigin
		if len(x.Origins) > 0 {
			asked = x.Origins[0]
		}
		f.Add(x.Head, asked.Index, asked.Header, x.Shown[0].Index, x.Shown[0].Header, x.Shown[0].Payload)
	}
	genuine, err := events.NewExcerpt(data, func(*events.Event) bool { return false })
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, head []byte, place int, origin []byte, index int, header, payload []byte) {
		one := events.Shown{Index: index, Header: header, Payload: payload}
		forged := events.Excerpt{Head: head, Digests: genuine.Digests, Shown: []events.Shown{one}}
		if origin != nil {
			forged.Origins = []events.ShownOrigin{{Index: place, Header: origin}}
			if place == 0 {
				forged.Origins[0].Answers = sha256.Sum256(sampleOrigins[0].Answers)
			}
		}
		opened := open(t, &forged)
		if opened != nil && opened.Hash == entry.Hash && !reflect.DeepEqual(opened.Events[0].Body, entry.Events[index].Body) {
			t.Errorf("event %d is shown as %+v, it was %+v", index, opened.Events[0].Body, entry.Events[index].Body)
		}
		if opened != nil && opened.Hash == entry.Hash && opened.Events[0].Caller.Principal != entry.Events[index].Caller.Principal {
			t.Errorf("event %d is shown as by %q, it was by %q", index, opened.Events[0].Caller.Principal, entry.Events[index].Caller.Principal)
		}
		fitting := events.Excerpt{Head: head, Digests: []events.Hash{digest(origin, nil), digest(header, payload)},
			Origins: []events.ShownOrigin{{Header: origin}}, Shown: []events.Shown{{Header: header, Payload: payload}}}
		e := open(t, &fitting)
		if e == nil {
			return
		}
		if rebuilt := rebuild(t, e); !reflect.DeepEqual(rebuilt.Events, e.Events) {
			t.Errorf("written and read again:\n%+v\nwant\n%+v", rebuilt.Events, e.Events)
		}
	})
}

// open returns nil for what is no excerpt.
func open(t *testing.T, x *events.Excerpt) *events.Entry {
	t.Helper()
	e, err := x.Open()
	if err != nil && !errors.Is(err, events.ErrDamaged) {
		t.Errorf("%v does not wrap ErrDamaged", err)
	}
	return e
}

func TestDecode_BombsCostLittle(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()[:3]...)
	testkit.CheckBombs(t, data, func(b []byte) error {
		_, err := events.Decode(b)
		return err
	})
	testkit.CheckBombs(t, data, func(b []byte) error {
		_, err := events.DecodeEvent(b, 1)
		return err
	})
}

// What is a binary string to the scan of an entry is scanned by itself.
func TestExcerpt_BombsCostLittle(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	x, err := events.NewExcerpt(data, func(*events.Event) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	t.Run("head", func(t *testing.T) {
		testkit.CheckBombs(t, x.Head, func(b []byte) error {
			_, err := (&events.Excerpt{Head: b, Digests: x.Digests}).Open()
			return err
		})
	})
	for _, kind := range []events.Kind{events.KindCreated, events.KindFailed} { // the longest
		t.Run(kind.String(), func(t *testing.T) {
			shown := x.Shown[kind-1]
			testkit.CheckBombs(t, shown.Header, func(b []byte) error {
				_, err := (&events.Excerpt{Head: x.Head, Digests: append(x.Digests[:len(sampleOrigins):len(sampleOrigins)], digest(b, shown.Payload)),
					Origins: x.Origins, Shown: []events.Shown{{Header: b, Payload: shown.Payload}}}).Open()
				return err
			})
		})
	}
	t.Run("origin", func(t *testing.T) {
		testkit.CheckBombs(t, x.Origins[0].Header, func(b []byte) error {
			digests := slices.Clone(x.Digests)
			digests[0] = digest(b, sampleOrigins[0].Answers)
			_, err := (&events.Excerpt{Head: x.Head, Digests: digests, Origins: []events.ShownOrigin{
				{Header: b, Answers: sha256.Sum256(sampleOrigins[0].Answers)}}}).Open()
			return err
		})
	})
}
