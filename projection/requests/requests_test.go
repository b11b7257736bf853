package requests_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/requests"
)

func TestWith_KeepsTheLatestAndChangesNoCopy(t *testing.T) {
	var l requests.List
	for i := range requests.Max + 3 {
		l = l.With(requests.Request{ID: fmt.Sprint("r", i), Run: 1, At: events.Millis(i)})
	}
	if len(l) != requests.Max || l.Of("r2") != nil || l.Of("r3") == nil || l.Latest() != events.Millis(requests.Max+2) || l.Of("") != nil {
		t.Errorf("%+v, want r3 to r18", l)
	}
	before := slices.Clone(l)
	changed := l.With(requests.Request{ID: "r5", Run: 2, At: 99})
	if r := changed.Of("r5"); !slices.Equal(l, before) || len(changed) != len(l) || r == nil || r.Run != 2 {
		t.Errorf("%+v, and the list before is %+v", changed, l)
	}
	one, other := l.With(requests.Request{ID: "one"}), l.With(requests.Request{ID: "other"})
	if one.Of("one") == nil || other.Of("other") == nil || !slices.Equal(l, before) {
		t.Error("two lists that go on from one share its end")
	}
}

func TestAnother_IsOfTheSameKeyAlone(t *testing.T) {
	first, other := events.Request{Behavior: "work"}, events.Request{Behavior: "work", Priority: 1}
	l := requests.List{{ID: first.ID("k")}, {ID: "plain"}}
	for id, want := range map[string]bool{first.ID("k"): false, other.ID("k"): true, "k": true, first.ID("l"): false, "plain": false, "": false} {
		if l.Another(id) != want {
			t.Errorf("%q: another one of its key %t, want %t", id, !want, want)
		}
	}
}

func TestDecode_ReadsWhatWasWrittenAndBoundsIt(t *testing.T) {
	for _, l := range []requests.List{nil, {{ID: "a", Run: 1 << 31, At: 7}, {ID: "b"}}} {
		var w wire.Writer
		l.Encode(&w)
		r := wire.NewReader(w.B)
		if got := requests.Decode(r); r.Close() != nil || !slices.Equal(got, l) || (got == nil) != (l == nil) {
			t.Errorf("%+v is read as %+v, %v", l, got, r.Err())
		}
	}
	for want, write := range map[string]func(w *wire.Writer){
		fmt.Sprint(requests.Max+1, " requests"): func(w *wire.Writer) { make(requests.List, requests.Max+1).Encode(w) },
		"run 4294967296": func(w *wire.Writer) {
			w.Array(1)
			w.Array(3)
			w.Text("a")
			w.Uint(1 << 32)
			w.Int(0)
		},
	} {
		var w wire.Writer
		write(&w)
		r := wire.NewReader(w.B)
		if got := requests.Decode(r); r.Close() == nil || !strings.HasSuffix(r.Err().Error(), ": "+want) {
			t.Errorf("%v, want %q; read as %d requests", r.Err(), want, len(got))
		}
	}
	var most wire.Writer
	make(requests.List, requests.Max).Encode(&most)
	if r := wire.NewReader(most.B); len(requests.Decode(r)) != requests.Max || r.Close() != nil {
		t.Errorf("%d requests: %v", requests.Max, r.Err())
	}
}
