package journal_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/internal/wire"
	"taskledger/projection/journal"
)

// machine folds losses, one an entry, beside a model.
type machine struct {
	state journal.State
	model []journal.Loss
	seq   uint64
	last  events.Ref
	entry uint64
}

func (m *machine) next(body events.Body) *events.Event {
	return &events.Event{Seq: m.seq + 1, Prev: m.last, Body: body, At: events.Millis(1000 + m.entry), Position: events.Position{Ref: events.RefOf(m.entry, 3)}}
}

// lose folds a loss.
func (m *machine) lose(t *rapid.T) {
	m.entry++
	lost := journal.Loss{Kind: events.KindRecovered, Entry: rapid.Uint64Range(1, m.entry).Draw(t, "entry"), Sound: events.Hash{byte(m.entry)},
		Reason: genText.Draw(t, "reason"), By: genText.Draw(t, "by")}
	var body events.Body
	if rapid.Bool().Draw(t, "accepted") {
		lost.Kind = events.KindAcceptedLoss
		body = &events.AcceptedLoss{Entry: lost.Entry, Sound: lost.Sound, Reason: lost.Reason}
	} else {
		lost.Entry--
		body = &events.Recovered{Entry: lost.Entry, Sound: lost.Sound, Reason: lost.Reason}
	}
	ev := m.next(body)
	ev.Caller.Principal = lost.By
	if err := m.state.Fold(ev); err != nil {
		t.Fatalf("%+v: %v", body, err)
	}
	lost.At = ev.At
	m.seq, m.last, m.model = ev.Seq, ev.Position.Ref, append(m.model, lost)
}

// refuse folds what the state forbids.
func (m *machine) refuse(t *rapid.T) {
	m.entry++
	ev := m.next(&events.AcceptedLoss{Entry: 1})
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		ev.Seq++
	case 1:
		ev.Prev++
	case 2:
		ev.Body = &events.AcceptedLoss{Entry: m.entry + 1}
	case 3:
		ev.Body = &events.Recovered{Entry: m.entry}
	case 4:
		ev.Body = &events.Suspended{}
	case 5:
		ev.Body = &events.AcceptedLoss{Entry: 1, Reason: strings.Repeat("x", events.MaxNameBytes+1)}
	}
	before := m.state
	if err := m.state.Fold(ev); err == nil {
		t.Fatalf("%+v %+v was folded", ev, ev.Body)
	}
	if !reflect.DeepEqual(before, m.state) {
		t.Fatalf("%+v was refused and left a trace", ev)
	}
}

func (m *machine) restore(t *rapid.T) {
	read, err := decode(encode(m.state))
	if err != nil || !slices.Equal(read.Losses(), m.state.Losses()) || read.Chain != m.state.Chain {
		t.Fatalf("read %+v, %v; want %+v", read, err, m.state)
	}
	m.state = read
}

func (m *machine) check(t *rapid.T) {
	if want := m.model[max(0, len(m.model)-journal.MaxLosses):]; !slices.Equal(m.state.Losses(), want) {
		t.Fatalf("lost are %+v, want %+v", m.state.Losses(), want)
	}
	if m.state.Seq != m.seq || m.state.Last != m.last {
		t.Fatalf("%d events up to %d, want %d up to %d", m.state.Seq, m.state.Last, m.seq, m.last)
	}
}

var genText = rapid.StringN(0, -1, events.MaxNameBytes)

func encode(s journal.State) []byte {
	var w wire.Writer
	s.Encode(&w)
	return w.B
}

func decode(data []byte) (s journal.State, err error) {
	if err := wire.Scan(data); err != nil {
		return s, err
	}
	r := wire.NewReader(data)
	s.Decode(r)
	return s, r.Close()
}

func TestState_IsTheModelWhateverIsRecorded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{}
		t.Repeat(map[string]func(*rapid.T){"lose": m.lose, "refuse": m.refuse, "restore": m.restore, "": m.check})
	})
}

// However much is lost, a bounded part of it is kept, the latest; the sequence goes on.
func TestState_KeepsTheLatestLosses(t *testing.T) {
	var s journal.State
	const losses = 3 * journal.MaxLosses
	for i := uint64(1); i <= losses; i++ {
		ev := &events.Event{Seq: i, Prev: s.Last, Body: &events.AcceptedLoss{Entry: i}, Position: events.Position{Ref: events.RefOf(i, 0)}}
		if err := s.Fold(ev); err != nil {
			t.Fatal(err)
		}
	}
	kept := s.Losses()
	if len(kept) != journal.MaxLosses || kept[len(kept)-1].Entry != losses || kept[0].Entry != losses-journal.MaxLosses+1 || s.Seq != losses {
		t.Errorf("%d of %d kept, from entry %d to %d", len(kept), s.Seq, kept[0].Entry, kept[len(kept)-1].Entry)
	}
}

func TestLoss_SaysWhatWasLostByWhomAndWhy(t *testing.T) {
	for want, l := range map[string]journal.Loss{
		"entry 7 was given up by ada on 2027-01-15T08:00:00Z: torn": {Kind: events.KindAcceptedLoss, Entry: 7, By: "ada", At: 1_800_000_000_000, Reason: "torn"},
		"entries may have been lost by the store, whose numbers are not used again on 2027-01-15T08:00:00Z: the machine stopped: entries 3 to 7": {
			Kind: events.KindRecovered, Entry: 7, At: 1_800_000_000_000, Reason: "the machine stopped: entries 3 to 7",
		},
		"the entries after 8 were lost by the store on 2027-01-15T08:00:00Z: restored: entries 3 to 7": {
			Kind: events.KindRecovered, Entry: 8, At: 1_800_000_000_000, Reason: "restored: entries 3 to 7",
		},
		"the entries after 7 were lost by the store on 2027-01-15T08:00:00Z": {Kind: events.KindRecovered, Entry: 7, At: 1_800_000_000_000},
	} {
		if got := l.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDecode_RefusesWhatIsTheFoldOfNoEvents(t *testing.T) {
	good := journal.Loss{Kind: events.KindAcceptedLoss, Entry: 1}
	if _, err := decode(written(1, 1<<20, good)); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", events.MaxNameBytes+1)
	for name, c := range map[string]struct {
		want string
		data []byte
	}{
		"losses without events":                {"1 losses after 0 events", written(0, 0, good)},
		"events without losses":                {"0 losses after 1 events", written(1, 1<<20)},
		"fewer losses than events":             {"1 losses after 2 events", written(2, 1<<20, good)},
		"more losses than are kept":            {"65 losses after 65 events", written(65, 1<<20, slices.Repeat([]journal.Loss{good}, 65)...)},
		"no last event":                        {"record of 1 events, the last one 0", written(1, 0, good)},
		"an entry to come":                     {"entry 1 cannot be lost before entry 1", written(1, 1<<20, journal.Loss{Kind: events.KindRecovered, Entry: 1})},
		"an entry given up before it is there": {"entry 2 cannot be lost before entry 1", written(1, 1<<20, journal.Loss{Kind: good.Kind, Entry: 2})},
		"no entry":                             {"entry 0 cannot be lost before entry 1", written(1, 1<<20, journal.Loss{Kind: good.Kind})},
		"a long reason":                        {"bytes exceed the limit", written(1, 1<<20, journal.Loss{Kind: good.Kind, Entry: 1, Reason: long})},
		"another kind":                         {"loss of kind", written(1, 1<<20, journal.Loss{Kind: events.KindPaused, Entry: 1})},
		"kind 256 and more":                    {"loss of kind", bytesOf(1, 1<<20, func(w *wire.Writer) { lossOf(w, 256+uint64(events.KindAcceptedLoss), good.Sound[:], good) })},
		"a short hash":                         {"hash of 31 bytes", bytesOf(1, 1<<20, func(w *wire.Writer) { lossOf(w, uint64(good.Kind), good.Sound[1:], good) })},
		"a long hash":                          {"hash of 33 bytes", bytesOf(1, 1<<20, func(w *wire.Writer) { lossOf(w, uint64(good.Kind), make([]byte, 33), good) })},
	} {
		if s, err := decode(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q; %+v", name, err, c.want, s)
		}
	}
	testkit.CheckBombs(t, written(2, 1<<20, good, good), func(b []byte) error { _, err := decode(b); return err })
}

func written(seq, last uint64, losses ...journal.Loss) []byte {
	var rows []func(*wire.Writer)
	for _, l := range losses {
		rows = append(rows, func(w *wire.Writer) { lossOf(w, uint64(l.Kind), l.Sound[:], l) })
	}
	return bytesOf(seq, last, rows...)
}

func bytesOf(seq, last uint64, rows ...func(*wire.Writer)) []byte {
	var w wire.Writer
	w.Array(3)
	w.Uint(seq)
	w.Uint(last)
	w.Array(len(rows))
	for _, row := range rows {
		row(&w)
	}
	return w.B
}

func lossOf(w *wire.Writer, kind uint64, sound []byte, l journal.Loss) {
	w.Array(6)
	w.Uint(kind)
	w.Uint(l.Entry)
	w.Bytes(sound)
	w.Text(l.Reason)
	w.Text(l.By)
	w.Int(int64(l.At))
}
