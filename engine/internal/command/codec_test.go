package command

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// Generators of what travels. Empty binary strings and empty maps travel as none, so none are made.
var (
	genText    = rapid.StringN(0, 20, 40)
	genRef     = rapid.Custom(func(t *rapid.T) events.Ref { return events.Ref(rapid.Uint64().Draw(t, "ref")) })
	genTime    = rapid.Custom(func(t *rapid.T) events.Millis { return events.Millis(rapid.Int64().Draw(t, "time")) })
	genID      = rapid.Custom(func(t *rapid.T) events.TaskID { return events.TaskID(genText.Draw(t, "id")) })
	genPayload = rapid.Custom(func(t *rapid.T) events.Payload {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		return rapid.SliceOfN(rapid.Byte(), 1, 30).Draw(t, "payload")
	})
	genMillis = rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "ms")) * time.Millisecond
	})
	genPolicy = rapid.Custom(func(t *rapid.T) events.Policy {
		return events.Policy{Timeout: genMillis.Draw(t, "timeout"), MaxAttempts: rapid.IntRange(0, 100).Draw(t, "attempts"),
			MaxLost: rapid.IntRange(0, 100).Draw(t, "losses"), LostDelay: genMillis.Draw(t, "delay"),
			Backoff:  events.Backoff{Base: genMillis.Draw(t, "base"), Max: genMillis.Draw(t, "max")},
			Existing: events.Existing(rapid.IntRange(0, 1).Draw(t, "existing")), Priority: rapid.Int64().Draw(t, "priority"),
			Retain: genMillis.Draw(t, "retain"), RetainCount: rapid.IntRange(1, 1_000_000).Draw(t, "retain count")}
	})
	genError = rapid.Custom(func(t *rapid.T) *events.Error {
		e := &events.Error{Code: genText.Draw(t, "code"), Message: genText.Draw(t, "message"), Retryable: rapid.Bool().Draw(t, "retryable"),
			Properties: rapid.MapOfN(genText, genText, 0, 3).Draw(t, "properties")}
		if len(e.Properties) == 0 {
			e.Properties = nil
		}
		return e
	})
	genSubmit = rapid.Custom(func(t *rapid.T) Submit {
		return Submit{genID.Draw(t, "task"), genText.Draw(t, "behavior"), genPolicy.Draw(t, "policy"), rapid.Int64().Draw(t, "priority"),
			genTime.Draw(t, "not before"), genPayload.Draw(t, "params"), genText.Draw(t, "request"), rapid.Bool().Draw(t, "merges"), rapid.Bool().Draw(t, "run now"), false}
	})
	genAttempts = rapid.Custom(func(t *rapid.T) (all []AttemptName) {
		for range rapid.IntRange(0, 3).Draw(t, "attempts") {
			all = append(all, AttemptName{genID.Draw(t, "task"), genRef.Draw(t, "started")})
		}
		return all
	})
	genProgress = rapid.Custom(func(t *rapid.T) events.Progressed {
		return events.Progressed{Done: rapid.Int64().Draw(t, "done"), Total: rapid.Int64().Draw(t, "total"), Note: genText.Draw(t, "note")}
	})
)

// genCommand makes a command of a number that New knows.
func genCommand(t *rapid.T, op uint64) Command {
	switch c := New(op).(type) {
	case *Submit:
		*c = genSubmit.Draw(t, "submit")
		return c
	case *Merge:
		return &Merge{genSubmit.Draw(t, "submit"), genRef.Draw(t, "life"), rapid.Uint64().Draw(t, "seq"), rapid.Bool().Draw(t, "operator")}
	case *Complete:
		*c = Complete{Task: genID.Draw(t, "task"), Started: genRef.Draw(t, "started"), Node: genText.Draw(t, "node"),
			How: Completion(rapid.IntRange(0, 3).Draw(t, "how")), Result: genPayload.Draw(t, "result"), Next: genTime.Draw(t, "next"),
			ByPolicy: rapid.Bool().Draw(t, "policy"), Random: rapid.Uint32().Draw(t, "random"), Wait: genMillis.Draw(t, "wait")}
		if c.How == Failed || rapid.Bool().Draw(t, "error") {
			c.Error = genError.Draw(t, "error")
		}
		return c
	case *Progress:
		return &Progress{genID.Draw(t, "task"), genRef.Draw(t, "started"), genText.Draw(t, "node"), genProgress.Draw(t, "progress")}
	case *Operate:
		return &Operate{genID.Draw(t, "task"), Operation(rapid.IntRange(0, int(OperationCount)-1).Draw(t, "do")), genText.Draw(t, "reason")}
	case *Pause:
		return &Pause{genText.Draw(t, "behavior"), rapid.Bool().Draw(t, "paused")}
	case *Offer:
		*c = Offer{Node: genText.Draw(t, "node"), Lease: genTime.Draw(t, "lease"), Slots: rapid.Int().Draw(t, "slots")}
		for range rapid.IntRange(0, 3).Draw(t, "behaviors") {
			c.Behaviors = append(c.Behaviors, OfferedBehavior{genText.Draw(t, "behavior"), rapid.Int().Draw(t, "slots")})
		}
		return c
	case *Reconcile:
		return &Reconcile{genText.Draw(t, "node"), rapid.Int64().Draw(t, "epoch"), genAttempts.Draw(t, "attempts"), rapid.Uint64().Draw(t, "answered"),
			genRef.Draw(t, "from"), genRef.Draw(t, "to")}
	case *HandOver:
		return &HandOver{genText.Draw(t, "node")}
	case *Get:
		return &Get{genID.Draw(t, "task"), rapid.Bool().Draw(t, "linear")}
	case *Await:
		return &Await{genID.Draw(t, "task"), genRef.Draw(t, "life"), uint64(rapid.Uint32().Draw(t, "run"))}
	case *List:
		return &List{rapid.Uint64Range(0, 4).Draw(t, "status"), genText.Draw(t, "behavior"), genText.Draw(t, "affinity"),
			genText.Draw(t, "node"), rapid.Int64Range(0, 1000).Draw(t, "limit"), genID.Draw(t, "after")}
	case *Info:
		return c
	case *Explain:
		return &Explain{genID.Draw(t, "task")}
	case *Plan:
		return &Plan{genText.Draw(t, "behavior"), genPayload.Draw(t, "params"), rapid.Bool().Draw(t, "merge"), genPayload.Draw(t, "stored")}
	case *Barrier:
		return &Barrier{rapid.Uint64().Draw(t, "number")}
	}
	t.Fatalf("command %d has no generator", op)
	return nil
}

// commandCount is one more than the highest number of a command.
func commandCount() (n uint64) {
	for n = 1; New(n) != nil; n++ {
	}
	return n
}

func TestBatch_EveryCommandIsReadAsWritten(t *testing.T) {
	count := commandCount()
	rapid.Check(t, func(t *rapid.T) {
		b := &Batch{Sender: "c-1", Lane: uint8(rapid.IntRange(0, int(LaneCount)-1).Draw(t, "lane")), Number: rapid.Uint64Range(1, 1<<62).Draw(t, "number"),
			Made:      genTime.Draw(t, "made"),
			Principal: genText.Draw(t, "principal"), Commands: []Command{}}
		for op := uint64(1); op < count; op++ {
			c := genCommand(t, op)
			if c.Op() != op {
				t.Fatalf("command %d says it is %d", op, c.Op())
			}
			b.Commands = append(b.Commands, c)
		}
		got, err := DecodeBatch(b.Encode())
		if err != nil || !reflect.DeepEqual(got, b) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, b)
		}
	})
}

// Batches are cut by size: an entry must hold what they say.
func TestCommand_SizeCoversItsBytes(t *testing.T) {
	count := commandCount()
	rapid.Check(t, func(t *rapid.T) {
		for op := uint64(1); op < count; op++ {
			c := genCommand(t, op)
			var w wire.Writer
			if Encode(&w, c); len(w.B) > c.Size() {
				t.Fatalf("%T takes %d bytes, its size is %d", c, len(w.B), c.Size())
			}
		}
	})
}

func TestBatch_RefusesWhatNoSenderMakes(t *testing.T) {
	one := slicesOf(&Info{}, 1)
	for name, b := range map[string]*Batch{
		"no sender":    {Lane: LaneSubmit, Number: 1, Commands: one},
		"number 0":     {Sender: "c-1", Commands: one},
		"unknown lane": {Sender: "c-1", Lane: LaneCount, Number: 1, Commands: one},
		"no command":   {Sender: "c-1", Number: 1},
		"principal":    {Sender: "c-1", Number: 1, Principal: strings.Repeat("p", events.MaxNameBytes+1), Commands: one},
		"too many":     {Sender: "c-1", Number: 1, Commands: slicesOf(&Info{}, MaxBatchCommands+1)},
	} {
		if got, err := DecodeBatch(b.Encode()); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
	for name, c := range map[string]Command{
		"completion": &Complete{How: Released + 1},
		"no error":   &Complete{How: Failed},
		"operation":  &Operate{Do: OperationCount},
		"run":        &Await{Run: math.MaxUint32 + 1},
	} {
		b := &Batch{Sender: "c-1", Number: 1, Commands: []Command{c}}
		if got, err := DecodeBatch(b.Encode()); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}

func slicesOf(c Command, n int) []Command {
	all := make([]Command, n)
	for i := range all {
		all[i] = c
	}
	return all
}

var genAnswer = rapid.Custom(func(t *rapid.T) Answer {
	a := Answer{Code: AnswerCode(rapid.IntRange(0, answerCodeCount-1).Draw(t, "code")), Life: genRef.Draw(t, "life"), Run: rapid.Uint32().Draw(t, "run")}
	if rapid.Bool().Draw(t, "long") {
		a.Joined, a.Text, a.Number, a.Data = rapid.Bool().Draw(t, "joined"), genText.Draw(t, "text"), rapid.Int64().Draw(t, "number"), genPayload.Draw(t, "data")
	}
	return a
})

func TestAnswers_AreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answers := rapid.SliceOfN(genAnswer, 0, 5).Draw(t, "answers")
		got, err := DecodeAnswers(EncodeAnswers(answers))
		if err != nil || len(got) != len(answers) || len(got) > 0 && !reflect.DeepEqual(got, answers) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, answers)
		}
		b := &Batch{Lane: rapid.Uint8Range(0, LaneCount-1).Draw(t, "lane"), Number: rapid.Uint64().Draw(t, "number")}
		shard, lane, number, message, recorded, err := DecodeAnswerMessage(EncodeAnswerMessage(200, b, answers, true))
		if err != nil || shard != 200 || lane != b.Lane || number != b.Number || !recorded || !reflect.DeepEqual(message, got) {
			t.Fatalf("message read as %d, %d, %d, %+v, %v", shard, lane, number, message, err)
		}
	})
}

func TestAnswerMessage_AcknowledgementIsNoAnswer(t *testing.T) {
	for _, answers := range [][]Answer{nil, {}} {
		_, _, _, got, _, err := DecodeAnswerMessage(EncodeAnswerMessage(1, &Batch{Number: 1}, answers, false))
		if err != nil || (got == nil) != (answers == nil) {
			t.Errorf("%#v is read as %#v, %v", answers, got, err)
		}
	}
}

func TestAssignments_AreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w wire.Writer
		want := make([]Assignment, rapid.IntRange(0, 4).Draw(t, "count"))
		w.Array(len(want))
		for i := range want {
			want[i] = Assignment{AttemptName: AttemptName{genID.Draw(t, "task"), genRef.Draw(t, "started")}, Behavior: genText.Draw(t, "behavior"),
				Number: rapid.Uint32().Draw(t, "number"), Failures: rapid.Uint32().Draw(t, "failures"), Lost: rapid.Uint32().Draw(t, "lost"),
				Policy: genPolicy.Draw(t, "policy"), Params: genPayload.Draw(t, "params"), ParamsAt: genRef.Draw(t, "params at")}
			want[i].Encode(&w)
		}
		got, err := DecodeAssignments(w.B)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, want)
		}
		names := genAttempts.Draw(t, "names")
		if got, err := DecodeNames(EncodeNames(names)); err != nil || !reflect.DeepEqual(got, names) {
			t.Fatalf("names read as %+v, %v; want %+v", got, err, names)
		}
	})
}

var genOutcome = rapid.Custom(func(t *rapid.T) Outcome {
	o := Outcome{Task: genID.Draw(t, "task"), Life: genRef.Draw(t, "life"), Run: rapid.Uint32().Draw(t, "run"), Ref: genRef.Draw(t, "ref"),
		Attempt: rapid.Uint32().Draw(t, "attempt"), Status: rapid.SampledFrom([]projection.Status{0, projection.Success, projection.Failure}).Draw(t, "status")}
	switch o.Status {
	case projection.Success:
		if o.Elided = rapid.Bool().Draw(t, "elided"); !o.Elided {
			o.Result = genPayload.Draw(t, "result")
		}
	case projection.Failure:
		o.Err = genError.Draw(t, "error")
	}
	return o
})

func TestOutcomes_AreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(genOutcome, 1, 5).Draw(t, "outcomes")
		messages := EncodeOutcomes(want)
		if len(messages) != 1 {
			t.Fatalf("%d messages", len(messages))
		}
		if got, err := DecodeOutcomes(messages[0]); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, want)
		}
	})
}

func TestOutcomes_LargeResultsAreLeftOutAndMessagesStayBounded(t *testing.T) {
	outcomes := make([]Outcome, 500)
	for i := range outcomes {
		outcomes[i] = Outcome{Task: events.TaskID(fmt.Sprint("t", i)), Status: projection.Success, Result: make(events.Payload, maxInlineResult+i%2)}
	}
	n := 0
	for _, m := range EncodeOutcomes(outcomes) {
		if len(m) > MaxAnswerBytes {
			t.Errorf("message of %d bytes", len(m))
		}
		got, err := DecodeOutcomes(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range got {
			if o.Task != outcomes[n].Task || o.Elided != (n%2 == 1) || o.Elided == (o.Result != nil) {
				t.Fatalf("outcome %d is %s, elided %t, with %d bytes", n, o.Task, o.Elided, len(o.Result))
			}
			n++
		}
	}
	if n != len(outcomes) {
		t.Errorf("%d outcomes, want %d", n, len(outcomes))
	}
}

func TestTask_IsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u32, flag := rapid.Uint32(), rapid.Bool()
		want := projection.Task{ID: genID.Draw(t, "id"), Kind: &projection.Kind{Behavior: genText.Draw(t, "behavior"), Policy: genPolicy.Draw(t, "policy")},
			Priority: rapid.Int64().Draw(t, "priority"), Params: genPayload.Draw(t, "params"), ParamsAt: genRef.Draw(t, "params at"),
			Status:    projection.Status(rapid.IntRange(1, 4).Draw(t, "status")),
			Suspended: flag.Draw(t, "suspended"), Cancelled: flag.Draw(t, "cancelled"), Rerun: flag.Draw(t, "rerun"), RunEnded: flag.Draw(t, "ended"),
			ParamsElided: flag.Draw(t, "params elided"), ResultElided: flag.Draw(t, "result elided"),
			Seq: rapid.Uint64().Draw(t, "seq"), Created: genRef.Draw(t, "created"), Last: genRef.Draw(t, "last"), Started: genRef.Draw(t, "started"),
			Outcome: genRef.Draw(t, "outcome"), Attempt: u32.Draw(t, "attempt"), Failures: u32.Draw(t, "failures"), Lost: u32.Draw(t, "lost"),
			Runs: u32.Draw(t, "runs"), Node: genText.Draw(t, "node"), Offer: rapid.Uint64().Draw(t, "offer"), Lease: genTime.Draw(t, "lease"),
			CreatedAt: genTime.Draw(t, "created at"), StartedAt: genTime.Draw(t, "started at"), EndedAt: genTime.Draw(t, "ended at"),
			Due: genTime.Draw(t, "due"), Result: genPayload.Draw(t, "result"), Requests: rapid.SliceOfN(genText, 1, 3).Draw(t, "requests")}
		if flag.Draw(t, "error") {
			want.Error = genError.Draw(t, "error")
		}
		if flag.Draw(t, "progress") {
			p := genProgress.Draw(t, "progress")
			want.Progress = &p
		}
		if want.Status == projection.Created { // no attempt has begun
			want.Started, want.Outcome, want.Attempt, want.Failures, want.Lost, want.Runs, want.Node, want.Offer = 0, 0, 0, 0, 0, 0, "", 0
			want.Lease, want.StartedAt, want.EndedAt, want.Result, want.Error, want.Progress = 0, 0, 0, nil, nil, nil
		}
		got, err := DecodeTask(EncodeTask(&want))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, want)
		}
	})
}

// fuzzed runs a decoder on hostile bytes and bounds what it may allocate.
func fuzzed[T any](f *testing.F, decode func([]byte) (T, error), encode func(T) []byte, seeds ...[]byte) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Add([]byte{0xdd, 0x00, 0x00, 0x10, 0x00})
	f.Add(append([]byte{0xdc, 0x10, 0x00}, make([]byte, 4096)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := decode(data)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, 128*uint64(len(data))+64<<10; got > most {
			t.Fatalf("%d bytes allocated to decode %d", got, len(data))
		}
		if err != nil {
			return
		}
		again, err := decode(encode(v))
		if err != nil || !reflect.DeepEqual(again, v) {
			t.Fatalf("written and read again:\n%+v, %v; want\n%+v", again, err, v)
		}
	})
}

func FuzzDecodeBatch(f *testing.F) {
	all := &Batch{Sender: "c-1", Lane: LaneWork, Number: 7, Principal: "ada"}
	for op := uint64(1); New(op) != nil; op++ {
		c := New(op)
		if done, ok := c.(*Complete); ok {
			done.How, done.Error = Failed, &events.Error{Code: "x", Properties: map[string]string{"a": "b"}}
		}
		all.Commands = append(all.Commands, c)
	}
	fuzzed(f, DecodeBatch, (*Batch).Encode, all.Encode())
}

func FuzzDecodeAnswers(f *testing.F) {
	fuzzed(f, DecodeAnswers, EncodeAnswers, EncodeAnswers([]Answer{{}, Refused(AnswerState, "no"), {Data: []byte{1}, Joined: true, Run: 3}}))
}

func FuzzDecodeOutcomes(f *testing.F) {
	encode := func(all []Outcome) []byte {
		var w wire.Writer
		w.Array(len(all))
		for i := range all {
			all[i].Encode(&w, len(all[i].Result))
		}
		return w.B
	}
	fuzzed(f, DecodeOutcomes, encode, encode([]Outcome{{Task: "a", Status: projection.Success, Result: []byte{1, 50}},
		{Task: "b", Status: projection.Failure, Err: &events.Error{Code: "x"}}, {Task: "c", Elided: true, Status: projection.Success}}))
}

func FuzzDecodeAssignments(f *testing.F) {
	encode := func(all []Assignment) []byte {
		if all == nil {
			return nil
		}
		var w wire.Writer
		w.Array(len(all))
		for i := range all {
			all[i].Encode(&w)
		}
		return w.B
	}
	fuzzed(f, DecodeAssignments, encode, encode([]Assignment{{Behavior: "work", Params: []byte{1, 50}}, {}}))
}

// answerMessage is what an answer message says.
type answerMessage struct {
	shard   int
	lane    uint8
	number  uint64
	answers []Answer

	recorded bool
}

func decodeMessage(data []byte) (m answerMessage, err error) {
	m.shard, m.lane, m.number, m.answers, m.recorded, err = DecodeAnswerMessage(data)
	return m, err
}

func FuzzDecodeAnswerMessage(f *testing.F) {
	fuzzed(f, decodeMessage, func(m answerMessage) []byte {
		return EncodeAnswerMessage(m.shard, &Batch{Lane: m.lane, Number: m.number}, m.answers, m.recorded)
	}, EncodeAnswerMessage(3, &Batch{Lane: 1, Number: 9}, nil, false), EncodeAnswerMessage(3, &Batch{Lane: 1, Number: 9}, []Answer{{}, {Text: "x"}}, true))
}
