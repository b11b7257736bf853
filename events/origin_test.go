package events_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/wire"
)

// An event of a caller behind a batch tells who asked: the caller where it has a name, and else whose batch it was.
func TestOrigin_CallersAreKnownBesideTheirBatch(t *testing.T) {
	var b events.Builder
	b.Reset(sampleHead())
	batch := b.AddOrigin(events.Origin{Sender: "c", Number: 1, Caller: events.Caller{Principal: "gateway"}})
	named := b.AddOrigin(events.Origin{Batch: batch, Caller: events.Caller{Principal: "ada", RequestID: "r-1", Traceparent: "00-1-2-01"}})
	unnamed := b.AddOrigin(events.Origin{Batch: batch, Caller: events.Caller{RequestID: "r-2"}})
	b.SetAnswers([]byte{1})
	for _, origin := range []int{batch, named, unnamed, 0} {
		b.Add(events.Event{Task: "a", Origin: origin, Body: &events.Suspended{}})
	}
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	e, err := events.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []events.Caller{{Principal: "gateway"}, {Principal: "ada", RequestID: "r-1", Traceparent: "00-1-2-01"},
		{Principal: "gateway", RequestID: "r-2"}, {}} {
		if got := e.Events[i].Caller; got != want || b.Entry.Events[i].Caller != want {
			t.Errorf("event %d was asked by %+v, built as %+v, want %+v", i, got, b.Entry.Events[i].Caller, want)
		}
	}
	if got := e.Origins[0].Answers; string(got) != "\x01" || e.Origins[1].Answers != nil {
		t.Errorf("answers %v and %v, want those of the batch alone", got, e.Origins[1].Answers)
	}
}

// Commands that have no caller of their own cost what they did: one byte an entry is for the rules of the fold.
func TestOrigin_WithoutCallersCostsNothingMore(t *testing.T) {
	_, plain := seal(t, sampleHead(), sampleOrigins[:1], samples()[0])
	raw := parse(t, plain)
	if got, want := len(raw.origins[0]), len(origin(1))+len("c-9f8e")-1+len("ada")-1; got != want {
		t.Errorf("an origin of %d bytes, want %d", got, want)
	}
	if got := raw.head[len(raw.head)-1]; got != events.FoldRules {
		t.Errorf("the head ends with %d, want the rules in one byte", got)
	}
}

func TestBuilder_DropOriginTakesBackABatchWithItsCallers(t *testing.T) {
	var b events.Builder
	b.Reset(sampleHead())
	b.AddOrigin(sampleOrigins[0])
	size := b.Size()
	b.AddOrigin(events.Origin{Batch: b.AddOrigin(sampleOrigins[1]), Caller: events.Caller{Principal: "ada"}})
	b.DropOrigin()
	if len(b.Entry.Origins) != 1 || b.Entry.Origins[0].Sender != sampleOrigins[0].Sender || b.Size() != size {
		t.Errorf("%+v of %d bytes are left, want the first batch and %d bytes", b.Entry.Origins, b.Size(), size)
	}
}

// What names a batch that is none, brings answers of its own or is too long is refused by Seal and by Decode.
func TestOrigin_CallersThatCannotBeAreRefused(t *testing.T) {
	long := string(make([]byte, events.MaxNameBytes+1))
	none := "which is no batch before it"
	for name, c := range map[string]struct {
		want    string
		origins []events.Origin
	}{
		"a batch that is not there": {none, []events.Origin{sampleOrigins[0], {Batch: 3}}},
		"itself":                    {none, []events.Origin{sampleOrigins[0], {Batch: 2}}},
		"a caller":                  {"origin 1, " + none, []events.Origin{sampleOrigins[0], {Batch: 1}, {Batch: 2}}},
		"no batch at all":           {none, []events.Origin{{Batch: 1}}},
		"a batch below none":        {none, []events.Origin{sampleOrigins[0], {Batch: -1}}},
		"answers":                   {"caller with answers", []events.Origin{sampleOrigins[0], {Batch: 1, Answers: []byte{1}}}},
		"a long principal":          {"principal of 257 bytes", []events.Origin{sampleOrigins[0], {Batch: 1, Caller: events.Caller{Principal: long}}}},
		"a long request id":         {"request id of 257 bytes", []events.Origin{sampleOrigins[0], {Batch: 1, Caller: events.Caller{RequestID: long}}}},
		"a long traceparent":        {"traceparent of 257 bytes", []events.Origin{sampleOrigins[0], {Batch: 1, Caller: events.Caller{Traceparent: long}}}},
		"no UTF-8":                  {"want UTF-8", []events.Origin{sampleOrigins[0], {Batch: 1, Caller: events.Caller{Principal: "\xff"}}}},
	} {
		var b events.Builder
		b.Reset(sampleHead())
		b.Entry.Origins = append(b.Entry.Origins, c.origins...)
		if _, err := b.Seal(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a caller with %s: %v, want %q", name, err, c.want)
		}
	}
	_, data := seal(t, sampleHead(), sampleCallers, samples()[0])
	genuine := parse(t, data)
	for of, want := range map[uint64]string{1: "", 2: none, 0: "caller without a batch", 3: none, 4: none, 1 << 40: "number 1099511627776 exceeds"} {
		forged := genuine
		var w wire.Writer
		w.Array(2)
		w.Uint(of)
		caller := events.Caller{Principal: "eve"}
		caller.Encode(&w)
		forged.origins = slices.Clone(genuine.origins)
		forged.origins[1] = w.B
		digests := []byte{}
		for i := range forged.origins {
			d := digest(forged.origins[i], forged.answers[i])
			digests = append(digests, d[:]...)
		}
		d := digest(forged.headers[0], forged.payloads[0])
		forged.hash = chain(forged.head, append(digests, d[:]...))
		if want != "" {
			refusedFor(t, forged.join(), want)
		} else if _, err := events.Decode(forged.join()); err != nil {
			t.Errorf("a caller of batch %d: %v", of, err)
		}
	}
}

// An excerpt shows a caller together with its batch, and neither the batch's answers nor other callers.
func TestExcerpt_ShowsACallerWithItsBatch(t *testing.T) {
	origins := append(slices.Clone(sampleCallers[:2]), events.Origin{Batch: 1, Caller: events.Caller{Principal: "mallory"}}, sampleCallers[2])
	first, second := samples()[10], samples()[11]
	first.Origin, second.Origin = 2, 3
	entry, data := seal(t, sampleHead(), origins, first, second)
	x, err := events.NewExcerpt(data, func(ev *events.Event) bool { return ev.Kind() == events.KindSuspended })
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Open()
	if err != nil {
		t.Fatal(err)
	}
	if got.Hash != entry.Hash || len(got.Events) != 1 || got.Events[0].Caller != sampleCallers[1].Caller || got.Origins[0].Sender != "c-9f8e" {
		t.Errorf("shown: %+v", got)
	}
	if got.Origins[0].Answers != nil || got.Origins[2].Principal != "" {
		t.Errorf("shown besides: %+v", got.Origins)
	}
	x.Origins = x.Origins[1:]
	if _, err := x.Open(); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("a caller without its batch: %v, want ErrDamaged", err)
	}
}

// What later rules of the fold led to is refused, and so are no rules.
func TestDecode_RefusesOtherRulesOfTheFold(t *testing.T) {
	for _, rules := range []uint64{0, events.FoldRules + 1} {
		var b events.Builder
		b.Reset(sampleHead())
		b.AddOrigin(sampleOrigins[0])
		b.Entry.Rules = rules
		data, err := b.Seal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := events.Decode(data); !errors.Is(err, events.ErrVersion) || !errors.Is(err, events.ErrDamaged) {
			t.Errorf("rules %d: %v, want ErrVersion", rules, err)
		}
	}
}

// A kind of a later version is told apart from damage.
func TestDecode_RefusesAKindOfALaterVersionByName(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins[:1], samples()[1])
	genuine := parse(t, data)
	forged := forge(genuine.head, genuine.origins[0], header(uint64(len(events.Kinds())+1), 1, func(w *wire.Writer) { w.Array(0) }))
	if _, err := events.Decode(forged); !errors.Is(err, events.ErrVersion) {
		t.Errorf("a later kind: %v, want ErrVersion", err)
	}
}

// An event that says more than this version knows is told apart from damage, as long as its entry is whole.
func TestDecode_RefusesATailOfALaterVersionByName(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins[:1], samples()[1])
	genuine := parse(t, data)
	policy := samplePolicy
	body := map[string]struct {
		kind  events.Kind
		write func(w *wire.Writer)
	}{
		"a creation": {events.KindCreated, func(w *wire.Writer) {
			w.Array(6)
			w.Text("work")
			w.Int(0)
			w.Int(1)
			policy.Encode(w)
			w.Array(3)
			w.Text("")
			w.Text("s")
			w.Text("")
			w.Text("tail")
		}},
		"a policy": {events.KindCreated, func(w *wire.Writer) {
			w.Array(4)
			w.Text("work")
			w.Int(0)
			w.Int(1)
			var of wire.Writer
			policy.Encode(&of)
			w.B = append(append(w.B, of.B[0]+1), of.B[1:]...)
			w.Int(7)
		}},
		"a merge":      {events.KindMerged, func(w *wire.Writer) { w.Array(2); w.Array(0); w.Text("tail") }},
		"a suspension": {events.KindSuspended, func(w *wire.Writer) { w.Array(2); w.Text("why"); w.Text("tail") }},
	}
	for name, of := range body {
		forged := forge(genuine.head, genuine.origins[0], header(uint64(of.kind), 1, of.write))
		if _, err := events.Decode(forged); !errors.Is(err, events.ErrVersion) || !errors.Is(err, events.ErrDamaged) {
			t.Errorf("%s with a tail: %v, want ErrVersion", name, err)
		}
		damaged := bytes.Clone(forged)
		damaged[len(damaged)-1]++
		if _, err := events.Decode(damaged); !errors.Is(err, events.ErrDamaged) || errors.Is(err, events.ErrVersion) {
			t.Errorf("%s with a tail, under another hash: %v, want damage", name, err)
		}
	}
}

// Events of records that are no tasks name none, and those of tasks do.
func TestEvent_NamesATaskIfItIsOfOne(t *testing.T) {
	for _, body := range []events.Body{&events.Paused{Behavior: "b"}, &events.Suspended{}} {
		for _, id := range []events.TaskID{"", "a"} {
			var b events.Builder
			b.Reset(sampleHead())
			b.Add(events.Event{Task: id, Body: body})
			if _, err := b.Seal(); (err == nil) != (id != "" == (body.Kind().Record() == events.OfTask)) {
				t.Errorf("%s of %q: %v", body.Kind(), id, err)
			}
		}
	}
}
