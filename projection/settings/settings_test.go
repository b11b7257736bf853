package settings_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/internal/wire"
	"taskledger/projection/settings"
	"taskledger/task"
)

// machine decides and folds, one event an entry, beside a model.
type machine struct {
	t       *rapid.T
	state   settings.State
	model   map[string]task.Pause
	entry   uint64
	seq     uint64
	last    events.Ref
	earlier []settings.State // copies
	then    [][]task.Pause
}

// next is the next event, with a body.
func (m *machine) next(body events.Body, by string) *events.Event {
	return &events.Event{Seq: m.seq + 1, Prev: m.last, Body: body, Caller: events.Caller{Principal: by}, At: events.Millis(1000 + m.entry),
		Position: events.Position{Ref: events.RefOf(m.entry+1, 0)}}
}

// decided folds what was decided, if it is an event.
func (m *machine) decided(body events.Body, by string) {
	ev := m.next(body, by)
	if m.entry++; body == nil {
		return
	}
	if err := m.state.Fold(ev); err != nil {
		m.t.Fatalf("%+v was decided, and refused: %v", body, err)
	}
	m.seq, m.last = ev.Seq, ev.Position.Ref
}

func (m *machine) pause(t *rapid.T) {
	p := task.Pause{Behavior: genBehavior.Draw(t, "behavior"), Reason: genReason.Draw(t, "reason"), By: genReason.Draw(t, "by")}
	body, err := m.state.DecidePause(p.Behavior, p.Reason)
	_, paused := m.model[p.Behavior]
	p.Since = events.Millis(1000 + m.entry)
	if err != nil || (body == nil) != paused {
		t.Fatalf("pause of %s, paused %t: %v, %v", p.Behavior, paused, body, err)
	}
	m.decided(body, p.By)
	if !paused {
		m.model[p.Behavior] = p
	}
}

func (m *machine) unpause(t *rapid.T) {
	behavior := genBehavior.Draw(t, "behavior")
	body, err := m.state.DecideUnpause(behavior)
	if _, paused := m.model[behavior]; err != nil || (body != nil) != paused {
		t.Fatalf("unpause of %s, paused %t: %v, %v", behavior, paused, body, err)
	}
	m.decided(body, "")
	delete(m.model, behavior)
}

// illegal folds an event that the state forbids.
func (m *machine) illegal(t *rapid.T) {
	behavior := genBehavior.Draw(t, "behavior")
	var body events.Body = &events.Unpaused{Behavior: behavior}
	if _, paused := m.model[behavior]; paused {
		body = &events.Paused{Behavior: behavior}
	}
	m.refused(t, m.next(body, ""))
}

// outOfPlace folds an event that is not the next one.
func (m *machine) outOfPlace(t *rapid.T) {
	body := events.Body(&events.Paused{Behavior: "never-paused"})
	ev := m.next(body, "")
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		ev.Seq += rapid.SampledFrom([]uint64{1, ^uint64(0)}).Draw(t, "sequence")
	case 1:
		ev.Prev++
	case 2:
		ev.Body = &events.Suspended{}
	}
	m.refused(t, ev)
}

func (m *machine) refused(t *rapid.T, ev *events.Event) {
	before := m.state
	if err := m.state.Fold(ev); err == nil {
		t.Fatalf("%+v %+v was folded", ev, ev.Body)
	}
	if !reflect.DeepEqual(before, m.state) {
		t.Fatalf("%+v was refused and left a trace", ev)
	}
}

// keep takes a copy, which must keep its value.
func (m *machine) keep(*rapid.T) {
	m.earlier, m.then = append(m.earlier, m.state), append(m.then, slices.Clone(m.state.Pauses()))
}

// restore goes on with what was written and read.
func (m *machine) restore(t *rapid.T) {
	read, err := decode(encode(m.state))
	if err != nil || !slices.Equal(read.Pauses(), m.state.Pauses()) || read.Chain != m.state.Chain {
		t.Fatalf("read %+v, %v; want %+v", read, err, m.state)
	}
	m.state = read
}

func (m *machine) check(t *rapid.T) {
	want := make([]task.Pause, 0, len(m.model))
	for _, behavior := range slices.Sorted(maps.Keys(m.model)) {
		want = append(want, m.model[behavior])
	}
	if got := m.state.Pauses(); !slices.Equal(got, want) {
		t.Fatalf("paused are %+v, want %+v", got, want)
	}
	if m.state.Seq != m.seq || m.state.Last != m.last {
		t.Fatalf("%d events up to %d, want %d up to %d", m.state.Seq, m.state.Last, m.seq, m.last)
	}
	for _, behavior := range behaviors {
		if got, paused := m.state.Pause(behavior); got != m.model[behavior] || paused != (got.Behavior != "") {
			t.Fatalf("%s: %+v, %t; want %+v", behavior, got, paused, m.model[behavior])
		}
	}
	for i := range m.earlier {
		if !slices.Equal(m.earlier[i].Pauses(), m.then[i]) {
			t.Fatalf("a copy has changed to %+v from %+v", m.earlier[i].Pauses(), m.then[i])
		}
	}
}

var (
	behaviors   = []string{"a", "b", "c", "d-4", "purge-table"}
	genBehavior = rapid.SampledFrom(behaviors)
	genReason   = rapid.StringN(0, -1, events.MaxNameBytes)
)

func encode(s settings.State) []byte {
	var w wire.Writer
	s.Encode(&w)
	return w.B
}

func decode(data []byte) (s settings.State, err error) {
	if err := wire.Scan(data); err != nil {
		return s, err
	}
	r := wire.NewReader(data)
	s.Decode(r)
	return s, r.Close()
}

func TestState_IsTheModelWhateverIsAskedAndRecorded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{t: t, model: map[string]task.Pause{}}
		t.Repeat(map[string]func(*rapid.T){"pause": m.pause, "unpause": m.unpause, "illegal": m.illegal, "out of place": m.outOfPlace,
			"keep": m.keep, "restore": m.restore, "": m.check})
	})
}

func TestDecide_RefusesWithTheLimit(t *testing.T) {
	var s settings.State
	long := strings.Repeat("x", events.MaxNameBytes+1)
	for name, row := range map[string]struct{ behavior, reason, want string }{
		"no behavior":     {"", "", "want 1 to 48"},
		"a long behavior": {long, "", "want 1 to 48"},
		"a bad behavior":  {"No Behavior", "", "want [a-z0-9-]"},
		"a long reason":   {"a", long, "reason: 257 bytes exceed the limit of 256"},
	} {
		body, err := s.DecidePause(row.behavior, row.reason)
		if body != nil || err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, %v; want %q", name, body, err, row.want)
		}
	}
	if body, err := s.DecideUnpause("No Behavior"); body != nil || err == nil || !strings.Contains(err.Error(), "want [a-z0-9-]") {
		t.Errorf("unpause: %v, %v", body, err)
	}
}

// fill pauses behaviors until no further one is accepted.
func fill(t *testing.T, reason string) (s settings.State, refused error) {
	t.Helper()
	for i := uint64(0); ; i++ {
		body, err := s.DecidePause(fmt.Sprintf("%048d", i), reason)
		if err != nil {
			return s, err
		}
		ev := &events.Event{Seq: i + 1, Prev: s.Last, Body: body, Caller: events.Caller{Principal: reason}, At: 1, Position: events.Position{Ref: events.RefOf(i+1, 0)}}
		if err := s.Fold(ev); err != nil {
			t.Fatal(err)
		}
	}
}

// What is decided is never refused by the fold, and the settings are small whoever asks, with whatever reason.
func TestState_StaysSmall(t *testing.T) {
	for _, reason := range []string{"", strings.Repeat("x", events.MaxNameBytes)} {
		s, err := fill(t, reason)
		if want := fmt.Sprint("exceed the limit of ", settings.MaxBytes); !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if n := len(encode(s)); n > settings.MaxBytes || n < settings.MaxBytes/2 {
			t.Errorf("%d pauses take %d bytes, at most %d are wanted", len(s.Pauses()), n, settings.MaxBytes)
		}
		if _, err := s.DecideUnpause(s.Pauses()[0].Behavior); err != nil {
			t.Errorf("a pause of full settings cannot be ended: %v", err)
		}
	}
}

func TestDecode_RefusesSettingsThatNoEventsFoldTo(t *testing.T) {
	s, _ := fill(t, "")
	if _, err := decode(encode(s)); err != nil {
		t.Fatal(err)
	}
	long := func(i int) string { return fmt.Sprintf("%048d", i) }
	var many []string
	for i := range settings.MaxBytes / (48 + 32) {
		many = append(many, long(i))
	}
	for name, c := range map[string]struct {
		want  string
		write func(w *wire.Writer)
	}{
		"pauses without events": {"1 pauses after 0 events", func(w *wire.Writer) { written(w, 0, 0, "a") }},
		"events without a last": {"record of 1 events, the last one 0", func(w *wire.Writer) { written(w, 1, 0, "a") }},
		"a behavior twice":      {"pause of a after that of a", func(w *wire.Writer) { written(w, 2, 1<<20, "a", "a") }},
		"another order":         {"pause of a after that of b", func(w *wire.Writer) { written(w, 2, 1<<20, "b", "a") }},
		"no behavior":           {"0 bytes, want 1 to 48", func(w *wire.Writer) { written(w, 1, 1<<20, "") }},
		"too many pauses":       {"1025 pauses", func(w *wire.Writer) { written(w, 2000, 1<<20, make([]string, settings.MaxBytes/32+1)...) }},
		"too many bytes":        {"settings of", func(w *wire.Writer) { written(w, 2000, 1<<20, append(many, long(len(many)))...) }},
		"a long reason": {"reason: 257 bytes exceed the limit of 256", func(w *wire.Writer) {
			w.Array(3)
			w.Uint(1)
			w.Uint(1 << 20)
			w.Array(1)
			pause(w, "a", strings.Repeat("x", 257))
		}},
	} {
		var w wire.Writer
		c.write(&w)
		if s, err := decode(w.B); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q; %d pauses", name, err, c.want, len(s.Pauses()))
		}
	}
	var most wire.Writer
	written(&most, 2000, 1<<20, many...)
	if _, err := decode(most.B); err != nil {
		t.Errorf("%d pauses: %v", len(many), err)
	}
	var few wire.Writer
	written(&few, 3, 1<<20, "a", "b", "c")
	testkit.CheckBombs(t, few.B, func(b []byte) error { _, err := decode(b); return err })
}

func written(w *wire.Writer, seq, last uint64, behaviors ...string) {
	w.Array(3)
	w.Uint(seq)
	w.Uint(last)
	w.Array(len(behaviors))
	for _, b := range behaviors {
		pause(w, b, "")
	}
}

func pause(w *wire.Writer, behavior, reason string) {
	w.Array(4)
	w.Text(behavior)
	w.Text(reason)
	w.Text("")
	w.Int(1)
}
