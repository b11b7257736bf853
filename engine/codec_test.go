package engine

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
	genSubmit = rapid.Custom(func(t *rapid.T) submitCommand {
		return submitCommand{genID.Draw(t, "task"), genText.Draw(t, "behavior"), genPolicy.Draw(t, "policy"), rapid.Int64().Draw(t, "priority"),
			genTime.Draw(t, "not before"), genPayload.Draw(t, "params"), genText.Draw(t, "request"), rapid.Bool().Draw(t, "merges"), rapid.Bool().Draw(t, "run now"), false}
	})
	genAttempts = rapid.Custom(func(t *rapid.T) (all []attemptName) {
		for range rapid.IntRange(0, 3).Draw(t, "attempts") {
			all = append(all, attemptName{genID.Draw(t, "task"), genRef.Draw(t, "started")})
		}
		return all
	})
	genProgress = rapid.Custom(func(t *rapid.T) events.Progressed {
		return events.Progressed{Done: rapid.Int64().Draw(t, "done"), Total: rapid.Int64().Draw(t, "total"), Note: genText.Draw(t, "note")}
	})
)

// genCommand makes a command of a number that newCommand knows.
func genCommand(t *rapid.T, op uint64) command {
	switch c := newCommand(op).(type) {
	case *submitCommand:
		*c = genSubmit.Draw(t, "submit")
		return c
	case *mergeCommand:
		return &mergeCommand{genSubmit.Draw(t, "submit"), genRef.Draw(t, "life"), rapid.Uint64().Draw(t, "seq"), rapid.Bool().Draw(t, "operator")}
	case *completeCommand:
		*c = completeCommand{Task: genID.Draw(t, "task"), Started: genRef.Draw(t, "started"), Node: genText.Draw(t, "node"),
			How: completion(rapid.IntRange(0, 3).Draw(t, "how")), Result: genPayload.Draw(t, "result"), Next: genTime.Draw(t, "next"),
			ByPolicy: rapid.Bool().Draw(t, "policy"), Random: rapid.Uint32().Draw(t, "random"), Wait: genMillis.Draw(t, "wait")}
		if c.How == failed || rapid.Bool().Draw(t, "error") {
			c.Error = genError.Draw(t, "error")
		}
		return c
	case *progressCommand:
		return &progressCommand{genID.Draw(t, "task"), genRef.Draw(t, "started"), genText.Draw(t, "node"), genProgress.Draw(t, "progress")}
	case *operateCommand:
		return &operateCommand{genID.Draw(t, "task"), operation(rapid.IntRange(0, int(operationCount)-1).Draw(t, "do")), genText.Draw(t, "reason")}
	case *pauseCommand:
		return &pauseCommand{genText.Draw(t, "behavior"), rapid.Bool().Draw(t, "paused")}
	case *offerCommand:
		*c = offerCommand{Node: genText.Draw(t, "node"), Lease: genTime.Draw(t, "lease"), Slots: rapid.Int().Draw(t, "slots")}
		for range rapid.IntRange(0, 3).Draw(t, "behaviors") {
			c.Behaviors = append(c.Behaviors, offeredBehavior{genText.Draw(t, "behavior"), rapid.Int().Draw(t, "slots")})
		}
		return c
	case *rollCallCommand:
		return &rollCallCommand{genText.Draw(t, "node"), rapid.Int64().Draw(t, "epoch"), genAttempts.Draw(t, "attempts"), rapid.Uint64().Draw(t, "answered"),
			genRef.Draw(t, "from"), genRef.Draw(t, "to")}
	case *handOverCommand:
		return &handOverCommand{genText.Draw(t, "node")}
	case *getCommand:
		return &getCommand{genID.Draw(t, "task"), rapid.Bool().Draw(t, "linear")}
	case *awaitCommand:
		return &awaitCommand{genID.Draw(t, "task"), genRef.Draw(t, "life"), uint64(rapid.Uint32().Draw(t, "run"))}
	case *listCommand:
		return &listCommand{rapid.Uint64Range(0, 4).Draw(t, "status"), genText.Draw(t, "behavior"), genText.Draw(t, "affinity"),
			genText.Draw(t, "node"), rapid.Int64Range(0, 1000).Draw(t, "limit"), genID.Draw(t, "after")}
	case *infoCommand:
		return c
	case *explainCommand:
		return &explainCommand{genID.Draw(t, "task")}
	case *planCommand:
		return &planCommand{genText.Draw(t, "behavior"), genPayload.Draw(t, "params"), rapid.Bool().Draw(t, "merge"), genPayload.Draw(t, "stored")}
	case *settleCommand:
		return &settleCommand{rapid.Uint64().Draw(t, "number")}
	}
	t.Fatalf("command %d has no generator", op)
	return nil
}

// commandCount is one more than the highest number of a command.
func commandCount() (n uint64) {
	for n = 1; newCommand(n) != nil; n++ {
	}
	return n
}

func TestBatch_EveryCommandIsReadAsWritten(t *testing.T) {
	count := commandCount()
	rapid.Check(t, func(t *rapid.T) {
		b := &batch{sender: "c-1", lane: uint8(rapid.IntRange(0, int(laneCount)-1).Draw(t, "lane")), number: rapid.Uint64Range(1, 1<<62).Draw(t, "number"),
			made:      genTime.Draw(t, "made"),
			principal: genText.Draw(t, "principal"), commands: []command{}}
		for op := uint64(1); op < count; op++ {
			c := genCommand(t, op)
			if c.op() != op {
				t.Fatalf("command %d says it is %d", op, c.op())
			}
			b.commands = append(b.commands, c)
		}
		got, err := decodeBatch(b.encode())
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
			if encodeCommand(&w, c); len(w.B) > c.size() {
				t.Fatalf("%T takes %d bytes, its size is %d", c, len(w.B), c.size())
			}
		}
	})
}

func TestBatch_RefusesWhatNoSenderMakes(t *testing.T) {
	one := slicesOf(&infoCommand{}, 1)
	for name, b := range map[string]*batch{
		"no sender":    {lane: laneSubmit, number: 1, commands: one},
		"number 0":     {sender: "c-1", commands: one},
		"unknown lane": {sender: "c-1", lane: laneCount, number: 1, commands: one},
		"no command":   {sender: "c-1", number: 1},
		"principal":    {sender: "c-1", number: 1, principal: strings.Repeat("p", events.MaxNameBytes+1), commands: one},
		"too many":     {sender: "c-1", number: 1, commands: slicesOf(&infoCommand{}, maxBatchCommands+1)},
	} {
		if got, err := decodeBatch(b.encode()); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
	for name, c := range map[string]command{
		"completion": &completeCommand{How: released + 1},
		"no error":   &completeCommand{How: failed},
		"operation":  &operateCommand{Do: operationCount},
		"run":        &awaitCommand{Run: math.MaxUint32 + 1},
	} {
		b := &batch{sender: "c-1", number: 1, commands: []command{c}}
		if got, err := decodeBatch(b.encode()); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}

func slicesOf(c command, n int) []command {
	all := make([]command, n)
	for i := range all {
		all[i] = c
	}
	return all
}

var genAnswer = rapid.Custom(func(t *rapid.T) answer {
	a := answer{code: answerCode(rapid.IntRange(0, answerCodeCount-1).Draw(t, "code")), life: genRef.Draw(t, "life"), run: rapid.Uint32().Draw(t, "run")}
	if rapid.Bool().Draw(t, "long") {
		a.joined, a.text, a.number, a.data = rapid.Bool().Draw(t, "joined"), genText.Draw(t, "text"), rapid.Int64().Draw(t, "number"), genPayload.Draw(t, "data")
	}
	return a
})

func TestAnswers_AreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answers := rapid.SliceOfN(genAnswer, 0, 5).Draw(t, "answers")
		got, err := decodeAnswers(encodeAnswers(answers))
		if err != nil || len(got) != len(answers) || len(got) > 0 && !reflect.DeepEqual(got, answers) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, answers)
		}
		b := &batch{lane: rapid.Uint8Range(0, laneCount-1).Draw(t, "lane"), number: rapid.Uint64().Draw(t, "number")}
		shard, lane, number, message, recorded, err := decodeAnswerMessage(encodeAnswerMessage(200, b, answers, true))
		if err != nil || shard != 200 || lane != b.lane || number != b.number || !recorded || !reflect.DeepEqual(message, got) {
			t.Fatalf("message read as %d, %d, %d, %+v, %v", shard, lane, number, message, err)
		}
	})
}

func TestAnswerMessage_AcknowledgementIsNoAnswer(t *testing.T) {
	for _, answers := range [][]answer{nil, {}} {
		_, _, _, got, _, err := decodeAnswerMessage(encodeAnswerMessage(1, &batch{number: 1}, answers, false))
		if err != nil || (got == nil) != (answers == nil) {
			t.Errorf("%#v is read as %#v, %v", answers, got, err)
		}
	}
}

func TestAssignments_AreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w wire.Writer
		want := make([]assignment, rapid.IntRange(0, 4).Draw(t, "count"))
		w.Array(len(want))
		for i := range want {
			want[i] = assignment{attemptName: attemptName{genID.Draw(t, "task"), genRef.Draw(t, "started")}, behavior: genText.Draw(t, "behavior"),
				number: rapid.Uint32().Draw(t, "number"), failures: rapid.Uint32().Draw(t, "failures"), lost: rapid.Uint32().Draw(t, "lost"),
				policy: genPolicy.Draw(t, "policy"), params: genPayload.Draw(t, "params"), paramsAt: genRef.Draw(t, "params at")}
			want[i].encode(&w)
		}
		got, err := decodeAssignments(w.B)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, want)
		}
		names := genAttempts.Draw(t, "names")
		if got, err := decodeNames(encodeNames(names)); err != nil || !reflect.DeepEqual(got, names) {
			t.Fatalf("names read as %+v, %v; want %+v", got, err, names)
		}
	})
}

var genOutcome = rapid.Custom(func(t *rapid.T) outcome {
	o := outcome{task: genID.Draw(t, "task"), life: genRef.Draw(t, "life"), run: rapid.Uint32().Draw(t, "run"), ref: genRef.Draw(t, "ref"),
		attempt: rapid.Uint32().Draw(t, "attempt"), status: rapid.SampledFrom([]projection.Status{0, projection.Success, projection.Failure}).Draw(t, "status")}
	switch o.status {
	case projection.Success:
		if o.elided = rapid.Bool().Draw(t, "elided"); !o.elided {
			o.result = genPayload.Draw(t, "result")
		}
	case projection.Failure:
		o.err = genError.Draw(t, "error")
	}
	return o
})

func TestOutcomes_AreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(genOutcome, 1, 5).Draw(t, "outcomes")
		messages := encodeOutcomes(want)
		if len(messages) != 1 {
			t.Fatalf("%d messages", len(messages))
		}
		if got, err := decodeOutcomes(messages[0]); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, want)
		}
	})
}

func TestOutcomes_LargeResultsAreLeftOutAndMessagesStayBounded(t *testing.T) {
	outcomes := make([]outcome, 500)
	for i := range outcomes {
		outcomes[i] = outcome{task: events.TaskID(fmt.Sprint("t", i)), status: projection.Success, result: make(events.Payload, maxInlineResult+i%2)}
	}
	n := 0
	for _, m := range encodeOutcomes(outcomes) {
		if len(m) > maxAnswerBytes {
			t.Errorf("message of %d bytes", len(m))
		}
		got, err := decodeOutcomes(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range got {
			if o.task != outcomes[n].task || o.elided != (n%2 == 1) || o.elided == (o.result != nil) {
				t.Fatalf("outcome %d is %s, elided %t, with %d bytes", n, o.task, o.elided, len(o.result))
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
		got, err := decodeTask(encodeTask(&want))
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
	all := &batch{sender: "c-1", lane: laneWork, number: 7, principal: "ada"}
	for op := uint64(1); newCommand(op) != nil; op++ {
		c := newCommand(op)
		if done, ok := c.(*completeCommand); ok {
			done.How, done.Error = failed, &events.Error{Code: "x", Properties: map[string]string{"a": "b"}}
		}
		all.commands = append(all.commands, c)
	}
	fuzzed(f, decodeBatch, (*batch).encode, all.encode())
}

func FuzzDecodeAnswers(f *testing.F) {
	fuzzed(f, decodeAnswers, encodeAnswers, encodeAnswers([]answer{{}, refused(answerState, "no"), {data: []byte{1}, joined: true, run: 3}}))
}

func FuzzDecodeOutcomes(f *testing.F) {
	encode := func(all []outcome) []byte {
		var w wire.Writer
		w.Array(len(all))
		for i := range all {
			all[i].encode(&w, len(all[i].result))
		}
		return w.B
	}
	fuzzed(f, decodeOutcomes, encode, encode([]outcome{{task: "a", status: projection.Success, result: []byte{1, 50}},
		{task: "b", status: projection.Failure, err: &events.Error{Code: "x"}}, {task: "c", elided: true, status: projection.Success}}))
}

func FuzzDecodeAssignments(f *testing.F) {
	encode := func(all []assignment) []byte {
		if all == nil {
			return nil
		}
		var w wire.Writer
		w.Array(len(all))
		for i := range all {
			all[i].encode(&w)
		}
		return w.B
	}
	fuzzed(f, decodeAssignments, encode, encode([]assignment{{behavior: "work", params: []byte{1, 50}}, {}}))
}

// answerMessage is what an answer message says.
type answerMessage struct {
	shard   int
	lane    uint8
	number  uint64
	answers []answer

	recorded bool
}

func decodeMessage(data []byte) (m answerMessage, err error) {
	m.shard, m.lane, m.number, m.answers, m.recorded, err = decodeAnswerMessage(data)
	return m, err
}

func FuzzDecodeAnswerMessage(f *testing.F) {
	fuzzed(f, decodeMessage, func(m answerMessage) []byte {
		return encodeAnswerMessage(m.shard, &batch{lane: m.lane, number: m.number}, m.answers, m.recorded)
	}, encodeAnswerMessage(3, &batch{lane: 1, number: 9}, nil, false), encodeAnswerMessage(3, &batch{lane: 1, number: 9}, []answer{{}, {text: "x"}}, true))
}
