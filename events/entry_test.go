package events_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"taskledger/events"
)

func TestEntry_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b events.Builder
		drawEntry(t, &b)
		data, err := b.Seal()
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > b.Size() {
			t.Fatalf("%d bytes sealed, Size said at most %d", len(data), b.Size())
		}
		got, err := events.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*got, b.Entry) {
			t.Fatalf("read\n%+v\nwant\n%+v", *got, b.Entry)
		}
		for i := range got.Events {
			if one, err := events.DecodeEvent(data, i); err != nil || !reflect.DeepEqual(*one, got.Events[i]) {
				t.Fatalf("event %d alone: %v\n%+v\nwant\n%+v", i, err, one, got.Events[i])
			}
		}
		if one, err := events.DecodeEvent(data, len(got.Events)); err != nil || one != nil {
			t.Fatalf("the event behind the last: %+v, %v", one, err)
		}
	})
}

// Every byte of the entry counts, whichever event is read.
func TestDecodeEvent_ChecksTheWholeEntry(t *testing.T) {
	_, data := seal(t, sampleHead(), sampleOrigins, samples()[:3]...)
	for at := range data {
		damaged := slices.Clone(data)
		damaged[at] ^= 1
		if ev, err := events.DecodeEvent(damaged, 0); !errors.Is(err, events.ErrDamaged) {
			t.Fatalf("byte %d of %d flipped: %+v, %v", at, len(data), ev, err)
		}
	}
}

// More bodies of each kind than are made at once, in two entries by one builder: none may be another's.
func TestBuilder_BodiesAreTheirOwnUntilTheNextEntry(t *testing.T) {
	var b events.Builder
	for number := uint64(1); number <= 2; number++ {
		b.Reset(events.Entry{Number: number, Owner: "n-1", Time: 1})
		for i := range uint32(300) {
			b.Add(events.Event{Task: "a", Seq: 1, Body: b.Created(events.Created{Behavior: "work", Priority: int64(i), NotBefore: 1})})
			b.Add(events.Event{Task: "a", Seq: 2, Body: b.Started(events.Started{Node: "n-1", Attempt: i})})
			b.Add(events.Event{Task: "a", Seq: 3, Body: b.Succeeded(events.Succeeded{Run: i})})
		}
		for i := range uint32(300) {
			got := b.Entry.Events[3*i : 3*i+3]
			if c := got[0].Body.(*events.Created); c.Priority != int64(i) || c.Behavior != "work" {
				t.Fatalf("entry %d: Created %d is %+v", number, i, c)
			}
			if s := got[1].Body.(*events.Started); s.Attempt != i || s.Node != "n-1" {
				t.Fatalf("entry %d: Started %d is %+v", number, i, s)
			}
			if s := got[2].Body.(*events.Succeeded); s.Run != i || s.Next != 0 {
				t.Fatalf("entry %d: Succeeded %d is %+v", number, i, s)
			}
		}
	}
}

func TestEntry_AnotherLibraryReadsTheSameValues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var b events.Builder
		drawEntry(rt, &b)
		data, err := b.Seal()
		if err != nil {
			rt.Fatal(err)
		}
		raw, e := parse(t, data), &b.Entry
		same(rt, generic(t, raw.head), []any{e.Shard, e.Number, e.Epoch, e.Owner, int64(e.Time), e.Prev[:], len(e.Origins), events.FoldRules})
		for i, o := range e.Origins {
			want := []any{o.Sender, o.Lane, o.Number, o.Principal}
			if o.Batch != 0 {
				want = []any{o.Batch, []any{o.Principal, o.RequestID, o.Traceparent}}
			}
			same(rt, generic(t, raw.origins[i]), want)
			if !bytes.Equal(raw.answers[i], o.Answers) || (raw.answers[i] == nil) != (o.Answers == nil) {
				rt.Fatalf("answers %x, want %x", raw.answers[i], o.Answers)
			}
		}
		for i, ev := range e.Events {
			body, payload := expected(ev.Body)
			same(rt, generic(t, raw.headers[i]),
				[]any{uint8(ev.Kind()), string(ev.Task), ev.Seq, uint64(ev.Prev), ev.Origin, ev.RequestID, body})
			if !bytes.Equal(raw.payloads[i], payload) || (raw.payloads[i] == nil) != (payload == nil) {
				rt.Fatalf("payload %x, want %x", raw.payloads[i], payload)
			}
		}
		if !bytes.Equal(raw.hash, e.Hash[:]) {
			rt.Fatalf("hash %x, want %s", raw.hash, e.Hash)
		}
	})
}

// same compares by the text of values: a generic decoder picks the width of integers.
func same(t *rapid.T, got, want any) {
	if got, want := render(got), render(want); got != want {
		t.Fatalf("another library reads\n%s\nwant\n%s", got, want)
	}
}

// expected is the body array and the payload of each kind, as the format has them.
func expected(body events.Body) ([]any, events.Payload) {
	switch b := body.(type) {
	case *events.Created:
		values := []any{b.Behavior, b.Priority, int64(b.NotBefore), policyValues(b.Policy)}
		if b.Ties != (events.Ties{}) {
			ties := []any{string(b.Ties.Parent), b.Ties.Schedule, b.Ties.Group}
			if b.Ties.By != "" || b.Ties.Run != 0 {
				ties = append(ties, b.Ties.By)
			}
			if b.Ties.Run != 0 {
				ties = append(ties, uint8(b.Ties.Run))
			}
			values = append(values, ties)
		}
		return values, b.Params
	case *events.Started:
		return []any{b.Node, b.Attempt, b.Offer, int64(b.Lease)}, nil
	case *events.Progressed:
		return []any{b.Done, b.Total, b.Note}, nil
	case *events.Succeeded:
		return []any{int64(b.Next), b.Run}, b.Result
	case *events.Failed:
		properties := make([]any, 0, 2*len(b.Error.Properties))
		for _, name := range slices.Sorted(maps.Keys(b.Error.Properties)) {
			properties = append(properties, name, b.Error.Properties[name])
		}
		return []any{[]any{b.Error.Code, b.Error.Message, b.Error.Retryable, properties}, int64(b.Next), b.Run}, nil
	case *events.Snoozed:
		return []any{int64(b.Until)}, nil
	case *events.Lost:
		return []any{int64(b.Until), b.Node}, nil
	case *events.Released:
		return []any{int64(b.Until), b.Node}, nil
	case *events.Rescheduled:
		values := append([]any{int64(b.At)}, termsValues(b.Terms)...)
		if b.Reason != "" && b.Terms == nil {
			values = append(values, []any{})
		}
		if b.Reason != "" {
			values = append(values, b.Reason)
		}
		return values, nil
	case *events.Merged:
		return termsValues(b.Terms), b.Params
	case *events.Joined:
		return termsValues(b.Terms), nil
	case *events.AcceptedLoss:
		return []any{b.Entry, b.Sound[:], b.Reason}, nil
	case *events.Recovered:
		return []any{b.Entry, b.Sound[:], b.Reason}, nil
	case *events.Paused:
		return []any{b.Behavior, b.Reason}, nil
	case *events.Unpaused:
		return []any{b.Behavior}, nil
	case *events.ItemAdded:
		return []any{b.ID, b.Group, b.At, b.Owner}, b.Data
	case *events.ItemReplaced:
		return []any{b.From, b.To, b.At, b.Owner}, b.Data
	case *events.ItemRemoved:
		return []any{b.ID, b.Owner}, nil
	case *events.StoreForgotten:
		return []any{b.Store, b.Last}, nil
	case *events.ScheduleSet:
		return []any{planValues(b.Plan), int64(b.Next), b.Offset, b.Code}, b.Params
	case *events.ScheduleDefined:
		values := []any{planValues(b.Plan), int64(b.Next), b.Offset, b.Code}
		if b.Reason != "" {
			values = append(values, b.Reason)
		}
		return values, b.Params
	case *events.Ticked:
		return []any{uint8(b.Decision), uint8(b.Cause), int64(b.From), int64(b.To), string(b.Run), int64(b.Next), b.ToOffset, b.NextOffset}, nil
	case *events.SchedulePaused:
		return []any{b.Reason, string(b.Failed)}, nil
	case *events.BackfillSet:
		return []any{int64(b.From), int64(b.To), b.Ticks}, nil
	case *events.BackfillEnded:
		return []any{b.Reason}, nil
	case *events.WorkPlanned:
		partitions := make([]any, 0, len(b.Partitions))
		for _, p := range b.Partitions {
			thresholds := make([]any, 0, 2*len(p.Thresholds))
			for _, t := range p.Thresholds {
				thresholds = append(thresholds, t.Counter, t.Limit)
			}
			partition := []any{p.ID, uint8(p.Mode), p.Buckets, p.Workers, p.Threads, p.Segments, thresholds}
			if p.Form != events.FormBuckets {
				partition = append(partition, uint8(p.Form), p.MovesToken)
			}
			if len(p.Rules) > 0 {
				partition = append(partition, p.Rules)
			}
			partitions = append(partitions, partition)
		}
		return []any{b.Run, b.Definition, partitions, b.Failed}, nil
	case *events.PartitionStarted:
		values := []any{b.Partition, b.Counted}
		if b.Counted {
			values = append(values, b.Expected)
		}
		return values, nil
	case *events.PartitionEnded:
		return []any{b.Partition}, nil
	case *events.BucketsMoved:
		values := []any{b.Worker, uint64(b.Attempt), b.Ended, b.Returned, uint8(b.Cause), b.Started}
		if b.Ended == 0 {
			return values, nil
		}
		return append(values, []any{b.Items.Done, b.Items.Failed, b.Items.Skipped}, errorTexts(b.Errors)), nil
	case *events.PermitsGranted:
		items := make([]any, 0, len(b.Items))
		for _, item := range b.Items {
			items = append(items, item)
		}
		return []any{b.Counter, b.Bucket, b.Simulate, items}, nil
	case *events.WorkReset:
		if b.What == events.ResetToken {
			return []any{uint8(b.What), []byte(b.Token), b.Reason}, nil
		}
		return []any{uint8(b.What)}, nil
	case *events.TokenMoved:
		return []any{uint64(b.Attempt), []byte(b.Token), b.Simulated, []any{b.Items.Done, b.Items.Failed, b.Items.Skipped}, errorTexts(b.Errors), b.Open,
			int64(b.Oldest)}, nil
	case *events.ChangeHeld:
		return []any{uint64(b.Attempt), b.Hold, b.Partition, []byte(b.Key), []byte(b.At), b.Data, b.Code, b.Message, b.Passed}, nil
	case *events.HoldMoved:
		return []any{b.Hold, b.Done, b.Ended}, nil
	case *events.Described:
		tags := make([]any, 0, len(b.Tags))
		for _, tag := range b.Tags {
			tags = append(tags, tag)
		}
		return []any{tags, int64(b.Deadline)}, nil
	case *events.Suspended:
		return []any{b.Reason}, nil
	case *events.CancelRequested:
		return []any{b.Reason}, nil
	}
	return []any{}, nil
}

func errorTexts(all []events.ItemError) []any {
	texts := make([]any, 0, 3*len(all))
	for _, e := range all {
		texts = append(texts, e.Item, e.Code, e.Message)
	}
	return texts
}

func policyValues(p events.Policy) []any {
	return []any{p.Timeout.Milliseconds(), p.MaxAttempts, p.MaxLost, p.LostDelay.Milliseconds(), p.Backoff.Base.Milliseconds(), p.Backoff.Max.Milliseconds(),
		uint8(p.Existing), p.Priority, p.Retain.Milliseconds(), p.RetainCount, p.Every.Milliseconds()}
}

func planValues(p events.SchedulePlan) []any {
	values := []any{p.Cron, p.Zone, p.Behavior, policyValues(p.Policy), p.Priority, uint8(p.Overlap), uint8(p.Misfire), int64(p.Grace), int64(p.Jitter),
		int64(p.Start), int64(p.End), p.Keep, p.PauseOnFailure}
	if p.Names != 0 {
		values = append(values, uint8(p.Names))
	}
	return values
}

func termsValues(t *events.Terms) []any {
	if t == nil {
		return []any{}
	}
	return []any{[]any{policyValues(t.Policy), t.Priority}}
}

func TestEntry_HashIsTheDocumentedChain(t *testing.T) {
	entry, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	raw := parse(t, data)
	sum := sha256.New()
	headSum := sha256.Sum256(raw.head)
	sum.Write(entry.Prev[:])
	sum.Write(headSum[:])
	for i := range raw.origins {
		d := digest(raw.origins[i], raw.answers[i])
		sum.Write(d[:])
	}
	for i := range raw.headers {
		d := digest(raw.headers[i], raw.payloads[i])
		sum.Write(d[:])
	}
	if got := sum.Sum(nil); !bytes.Equal(got, entry.Hash[:]) || !bytes.Equal(got, raw.hash) {
		t.Errorf("the documented chain gives %x, the entry has %s and stores %x", got, entry.Hash, raw.hash)
	}
}

func TestEntry_HashIsPinned(t *testing.T) {
	entry, data := seal(t, sampleHead(), sampleOrigins, samples()[9], samples()[13])
	raw := parse(t, data)
	for i, want := range []string{"b74149e04dd5d27adc18d64646e9c4d4d410673a5b5c2f4795fdad9eca86ad57", "b04f3906be9d5d1fe1b95e138789f3ad3c3c98c60720da5796d31e4df51d2e02"} {
		if got := fmt.Sprintf("%x", digest(raw.headers[i], raw.payloads[i])); got != want {
			t.Errorf("digest of %s %s, want %s", entry.Events[i].Kind(), got, want)
		}
	}
	if got, want := entry.Hash.String(), "382c31e44e9b235d88d4b4041fe50279945a8949f0549f191ebe61675452ec7a"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

// digest returns the digest of an event or an origin; 32 zero bytes stand for the sum of no payload or answers.
func digest(header, payload []byte) [32]byte {
	sum := make([]byte, 32)
	if payload != nil {
		p := sha256.Sum256(payload)
		sum = p[:]
	}
	return sha256.Sum256(append(bytes.Clone(header), sum...))
}

// An entry whose hash was made to fit cannot be told by itself, but the next entry names the hash it followed.
func TestEntry_HashDependsOnEverything(t *testing.T) {
	seen := map[events.Hash]string{}
	add := func(what string, head events.Entry, origins []events.Origin, evs ...events.Event) {
		e, _ := seal(t, head, origins, evs...)
		if was, ok := seen[e.Hash]; ok {
			t.Errorf("%s and %s have the same hash", what, was)
		}
		seen[e.Hash] = what
	}
	all := samples()
	add("the sample", sampleHead(), sampleOrigins, all...)
	add("without its last event", sampleHead(), sampleOrigins, all[:len(all)-1]...)
	silent := slices.Clone(sampleOrigins)
	silent[0].Answers = nil
	add("without an answer", sampleHead(), silent, all...)
	for what, change := range map[string]func(*events.Entry){
		"shard": func(e *events.Entry) { e.Shard++ }, "number": func(e *events.Entry) { e.Number++ },
		"epoch": func(e *events.Entry) { e.Epoch++ }, "owner": func(e *events.Entry) { e.Owner += "x" },
		"time": func(e *events.Entry) { e.Time++ }, "prev": func(e *events.Entry) { e.Prev[31]++ },
	} {
		head := sampleHead()
		change(&head)
		add(what, head, sampleOrigins, all...)
	}
}

func TestDecode_CopiesWhatItKeeps(t *testing.T) {
	entry, data := seal(t, sampleHead(), sampleOrigins, samples()...)
	got, err := events.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = 0xff
	}
	if !reflect.DeepEqual(*got, entry) {
		t.Error("a decoded entry changes with the bytes it was decoded from")
	}
}

func TestBuilder_ResetForgetsTheEntryBefore(t *testing.T) {
	want, wantData := seal(t, sampleHead(), sampleOrigins, samples()...)
	var b events.Builder
	for range 3 {
		b.Reset(sampleHead())
		for _, o := range sampleOrigins {
			b.AddOrigin(o)
		}
		b.AddOrigin(events.Origin{Sender: "answered without event", Answers: []byte("x")})
		b.DropOrigin()
		for _, ev := range samples() {
			b.Add(ev)
		}
		data, err := b.Seal()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, wantData) || !reflect.DeepEqual(b.Entry, want) {
			t.Fatal("a reused builder writes another entry")
		}
	}
}

func TestBuilder_AddFillsInWhatTheEntryKnows(t *testing.T) {
	var b events.Builder
	b.Reset(sampleHead())
	origin := b.AddOrigin(events.Origin{Sender: "c", Caller: events.Caller{Principal: "ada"}})
	b.SetAnswers([]byte("yes"))
	b.Add(events.Event{Task: "a", Body: &events.Deleted{}})
	ev := b.Add(events.Event{Task: "b", Origin: origin, Body: &events.Deleted{}})
	if got, want := ev.Position, (events.Position{Shard: 11, Ref: events.RefOf(42, 1)}); got != want {
		t.Errorf("position %s, want %s", got, want)
	}
	if ev.At != sampleTime || ev.Caller.Principal != "ada" || b.Entry.Events[0].Caller.Principal != "" {
		t.Errorf("at %d by %q after %q, want %d by ada after nobody", ev.At, ev.Caller.Principal, b.Entry.Events[0].Caller.Principal, sampleTime)
	}
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	e, err := events.Decode(data)
	if err != nil || string(e.Origins[0].Answers) != "yes" {
		t.Errorf("answers %q, %v, want those set after AddOrigin", e.Origins[0].Answers, err)
	}
}

func TestEntry_WithOriginsAloneIsReadAsWritten(t *testing.T) {
	var b events.Builder
	b.Reset(events.Entry{Shard: 1, Number: 1, Epoch: 7, Owner: "owner", Time: 9})
	b.AddOrigin(events.Origin{Sender: "c-1", Number: 3})
	b.SetAnswers([]byte{1})
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	e, err := events.Decode(data)
	if err != nil || len(e.Events) != 0 || len(e.Origins) != 1 || e.Origins[0].Number != 3 || e.Hash != b.Entry.Hash {
		t.Errorf("read as %+v, %v", e, err)
	}
	x, err := events.NewExcerpt(data, func(*events.Event) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := x.Open(); err != nil || opened.Hash != e.Hash {
		t.Errorf("excerpt opens as %+v, %v", opened, err)
	}
}

func TestEntry_WithNothingIsRefused(t *testing.T) {
	var b events.Builder
	b.Reset(events.Entry{Shard: 1, Number: 1})
	if data, err := b.Seal(); err == nil {
		t.Errorf("sealed as %x", data)
	}
}
