package command_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/projection"
	"taskledger/projection/requests"
	"taskledger/projection/settings"
	"taskledger/task"
)

// raw is a command as its bytes, which follow the number.
func raw(op uint64, value []byte) *command.Unknown {
	return &command.Unknown{Number: op, Known: commands.Table.New(op) != nil, Raw: value}
}

// withTail is a command as a later release would send it: with a field more.
func withTail(t *testing.T, c command.Command) *command.Unknown {
	t.Helper()
	var w wire.Writer
	command.Encode(&w, c)
	r := wire.NewReader(w.B)
	r.Uint()
	if r.NextBytes() {
		body := r.View()
		body = append([]byte{body[0] + 1}, body[1:]...) // the head of an array of few
		w.B = nil
		w.Bytes(append(body, 0xa1, 'x'))
		return raw(c.Op(), w.B)
	}
	value := r.Raw()
	return raw(c.Op(), append(append([]byte{value[0] + 1}, value[1:]...), 0x91, 0xa1, 'x'))
}

func batchIn(lane uint8, commands ...command.Command) *command.Batch {
	return &command.Batch{Sender: "c-1", Lane: lane, Number: 1, Commands: commands}
}

// What a later release asks is known as such, and what comes with it is read.
func TestBatch_ReadsCommandsOfALaterReleaseAsUnknown(t *testing.T) {
	merge := &command.Merge{Submit: command.Submit{Task: "a/b", Behavior: "work"}}
	later := map[string]*command.Unknown{
		"a number that is not known":    raw(99, []byte{0x92, 0x01, 0x81, 0xa1, 'a', 0xc0}),
		"a message that is not known":   raw(250, []byte{0xc4, 0x01, 0x90}),
		"a submit with a tail":          withTail(t, &merge.Submit),
		"a merge with a tail":           withTail(t, merge),
		"an operation with a tail":      withTail(t, &command.Operate{Task: "a/b", Reason: "r"}),
		"a pause with a tail":           withTail(t, &command.Pause{Behavior: "work"}),
		"a question with a tail":        withTail(t, &command.Get{Task: "a/b"}),
		"a barrier with a tail":         withTail(t, &command.Barrier{Number: 7}),
		"a merge of a submit with tail": raw(merge.Op(), mergeOf(withTail(t, &merge.Submit).Raw)),
		"a submit of a longer policy":   raw(merge.Submit.Op(), longer(t, &merge.Submit, policyBytes(merge.Submit.Policy))),
		"a merge of a longer policy":    raw(merge.Op(), longer(t, merge, policyBytes(merge.Submit.Policy))),
	}
	for name, c := range later {
		for _, lane := range []uint8{command.LaneSubmit, command.LaneQuery} {
			want := batchIn(lane, &command.Info{}, c, &command.Operate{Task: "a/b"})
			if got, err := commands.Table.DecodeBatch(want.Encode()); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: read as %+v, %v; want %+v", name, got, err, want)
			}
		}
		for _, lane := range []uint8{command.LaneWork, command.LaneOffer} { // they wait for an owner that knows them
			if got, err := commands.Table.DecodeBatch(batchIn(lane, c).Encode()); err == nil {
				t.Errorf("%s: read in lane %d as %+v", name, lane, got)
			}
		}
	}
}

func policyBytes(p events.Policy) []byte {
	var w wire.Writer
	p.Encode(&w)
	return w.B
}

// grow is an array of few with two values more.
func grow(value []byte) []byte {
	head, rest := []byte{value[0] + 2}, value[1:]
	if value[0]&0x0f >= 14 {
		head = []byte{0xdc, 0, value[0]&0x0f + 2}
	}
	return append(append(head, rest...), 0x93, 0xc0, 0x81, 0xa1, 'k', 0x01, 0xc4, 0x01, 'x', 0xa1, 'y')
}

// longer returns the encoded command with a part of it grown.
func longer(t *testing.T, c command.Command, part []byte) []byte {
	t.Helper()
	var w wire.Writer
	command.Encode(&w, c)
	r := wire.NewReader(w.B)
	r.Uint()
	return grownIn(t, r.Raw(), part)
}

// grownIn is a message with a part of it grown, wherever that is.
func grownIn(t *testing.T, whole, part []byte) []byte {
	t.Helper()
	if bytes.Count(whole, part) == 0 {
		t.Fatalf("% x is not in % x", part, whole)
	}
	return bytes.ReplaceAll(whole, part, grow(part))
}

// A batch of which this release does not know all asks for nothing that may be decided: not under a condition that
// it does not see, and not for a caller whom it half knows.
func TestBatch_ThatHasATailIsOfCommandsThatNobodyKnows(t *testing.T) {
	caller := events.Caller{Principal: "ada", RequestID: "r"}
	var asked wire.Writer
	caller.Encode(&asked)
	for _, lane := range []uint8{command.LaneSubmit, command.LaneQuery, command.LaneWork, command.LaneOffer} {
		plain := batchIn(lane, &command.Info{}, &command.Operate{Task: "a/b"})
		named := batchIn(lane)
		named.Add(&command.Info{}, &caller)
		named.Add(&command.Operate{Task: "a/b"}, nil)
		withCaller := named.Encode()
		for name, data := range map[string][]byte{"a batch of nine": grow(withCaller), "a caller of five": grownIn(t, withCaller, asked.B),
			"a batch of ten with a caller of five": grow(grownIn(t, withCaller, asked.B))} {
			b, err := commands.Table.DecodeBatch(data)
			if lane == command.LaneWork || lane == command.LaneOffer {
				if err == nil {
					t.Errorf("lane %d: %s is read as %+v", lane, name, b)
				}
				continue
			}
			if err != nil || len(b.Commands) != 2 || b.Number != 1 || b.Sender != "c-1" {
				t.Errorf("lane %d: %s is read as %+v, %v", lane, name, b, err)
				continue
			}
			for i, c := range plain.Commands {
				if later, is := b.Commands[i].(*command.Unknown); !is || later.Number != c.Op() {
					t.Errorf("lane %d: command %d of %s is %+v, want it unknown", lane, i, name, b.Commands[i])
				}
			}
		}
	}
}

// mergeOf is a Merge whose submit is the given bytes.
func mergeOf(submit []byte) []byte {
	var w wire.Writer
	w.Array(4)
	w.B = append(w.B, submit...)
	w.Uint(1)
	w.Uint(1)
	w.Bool(false)
	return w.B
}

// A command that is malformed is none of a later release.
func TestBatch_RefusesMalformedCommandsBesideUnknownOnes(t *testing.T) {
	unknown := raw(99, []byte{0x90})
	for name, c := range map[string]command.Command{
		"a field less":    raw(new(command.Barrier).Op(), []byte{0xc4, 0x01, 0x90}),
		"another type":    raw(new(command.Submit).Op(), []byte{0xa1, 'x'}),
		"bytes after one": raw(new(command.Barrier).Op(), []byte{0xc4, 0x03, 0x91, 0x01, 0x01}),
	} {
		if got, err := commands.Table.DecodeBatch(batchIn(command.LaneSubmit, unknown, c).Encode()); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}

func TestDecide_RefusesACommandOfALaterReleaseByTheNameOfTheOwner(t *testing.T) {
	l := ledgerAt(t, atCreated)
	for c, want := range map[*command.Unknown]string{
		raw(99, []byte{0x90}):                                    "node a-xyz does not know command 99: upgrade it first",
		withTail(t, &command.Operate{Task: ledgerTask}):          "node a-xyz does not know all fields of command 5: upgrade it first",
		withTail(t, &command.Submit{Task: "new/one"}):            "node a-xyz does not know all fields of command 1: upgrade it first",
		withTail(t, l.merge("2")):                                "node a-xyz does not know all fields of command 2: upgrade it first",
		withTail(t, &command.Pause{Behavior: "w", Paused: true}): "node a-xyz does not know all fields of command 6: upgrade it first",
	} {
		var a command.Answer
		kinds := l.entry(func(d *command.Decider) {
			d.Self = "a-xyz"
			a = d.Decide(c)
			l.legal(d)
		})
		if a.Code != command.AnswerState || a.Text != want || kinds != nil {
			t.Errorf("answered %+v, events %v; want %q", a, kinds, want)
		}
	}
	a := command.Misplaced(raw(99, nil), strings.Repeat("n", 1000))
	if len(a.Text) > 128 || !strings.HasSuffix(a.Text, "upgrade it first") {
		t.Errorf("refused with %q", a.Text)
	}
}

// Whoever is told more than it knows takes what it knows.
func TestAnswersAndGossip_TailsArePassedOver(t *testing.T) {
	one := func(value []byte) []byte { return append([]byte{0x91}, value...) }
	var ended, assignment wire.Writer
	o := outcome.Outcome{Task: "a", Status: 2, Result: events.JSON([]byte("1"))}
	o.Encode(&ended, 100)
	a := command.Assignment{AttemptName: command.AttemptName{Task: "a", Started: 1}, Behavior: "work", Number: 3, Life: 1}
	a.Encode(&assignment)
	if got, err := outcome.Decode(one(grow(ended.B))); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], o) {
		t.Errorf("outcome is read as %+v, %v; want %+v", got, err, o)
	}
	if got, err := command.DecodeAssignments(one(grow(assignment.B))); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], a) {
		t.Errorf("assignment is read as %+v, %v; want %+v", got, err, a)
	}
	for _, answer := range []command.Answer{command.Refused(command.AnswerState, "no"), {Joined: true, Data: []byte{1}, Number: -3}} {
		long := command.EncodeAnswers([]command.Answer{answer})[1:]
		if got, err := command.DecodeAnswers(one(grow(long))); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], answer) {
			t.Errorf("answer is read as %+v, %v; want %+v", got, err, answer)
		}
	}
	sent := command.EncodeAnswerMessage(3, &command.Batch{Lane: 1, Number: 9}, []command.Answer{{Run: 4}}, true)
	shard, lane, number, answers, recorded, err := command.DecodeAnswerMessage(grow(sent))
	if err != nil || shard != 3 || lane != 1 || number != 9 || !recorded || fmt.Sprint(answers) != fmt.Sprint([]command.Answer{{Run: 4}}) {
		t.Errorf("answer message is read as %d, %d, %d, %+v, %t, %v", shard, lane, number, answers, recorded, err)
	}
	type gossip struct {
		Node  string
		Count int64
	}
	told := gossip{"n", -5}
	if got, err := command.ReadLenient[gossip](grow(message.Encode(told))); err != nil || got != told {
		t.Errorf("gossip is read as %+v, %v; want %+v", got, err, told)
	}
	if got, err := command.ReadMessage[command.PlanMessage](grow(message.Encode(command.PlanMessage{Planners: []string{"n"}}))); err == nil {
		t.Errorf("a letter that asks is read as %+v", got)
	}
}

// The parts of what is told grow, too.
func TestTold_TailsOfPartsArePassedOver(t *testing.T) {
	l := ledgerAt(t, atFailure)
	kept := *l.task()
	kept.Requests = requests.List{{ID: "k", Run: 1, At: 7}}
	kept.Run = events.RunByHand
	kept.About = &projection.Description{Tags: []string{"nightly"}, Deadline: 5}
	encoded := command.EncodeTask(&kept)
	var failure, pause wire.Writer
	kept.Error.Encode(&failure)
	pause.Array(4)
	for _, text := range []string{"work", "why", "ada"} {
		pause.Text(text)
	}
	pause.Int(int64(ledgerStart))
	want, err := command.DecodeTask(encoded)
	if err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string][]byte{"policy": policyBytes(kept.Kind.Policy), "error": failure.B, "request": {0x93, 0xa1, 'k', 1, 7}, "description": {0x92, 0x91, 0xa7, 'n', 'i', 'g', 'h', 't', 'l', 'y', 5}, "all of it": encoded} {
		if got, err := command.DecodeTask(grownIn(t, encoded, part)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("a task with a longer %s is read as %+v, %v; want %+v", name, got, err, want)
		}
	}

	l.decide(&command.Pause{Behavior: "work", Paused: true, Reason: "why"})
	settings := command.EncodeSettings(settings.Of(l.state))
	known, err := command.DecodeSettings(settings)
	if err != nil || len(known.Pauses()) != 1 {
		t.Fatal(known, err)
	}
	var row wire.Writer
	row.Array(4)
	p := known.Pauses()[0]
	row.Text(p.Behavior)
	row.Text(p.Reason)
	row.Text(p.By)
	row.Int(int64(p.Since))
	if got, err := command.DecodeSettings(grownIn(t, settings, row.B)); err != nil || !reflect.DeepEqual(got.Pauses(), known.Pauses()) {
		t.Errorf("a pause that tells more is read as %+v, %v: what it keeps from starting must not start", got.Pauses(), err)
	}

	failed := outcome.Outcome{Task: "a", Status: task.Failure, Err: kept.Error}
	var told wire.Writer
	told.Array(300)
	for range 300 {
		failed.Encode(&told, 100)
	}
	if got, err := outcome.Decode(grownIn(t, told.B, failure.B)); err != nil || len(got) != 300 || !reflect.DeepEqual(got[299], failed) {
		t.Errorf("outcomes of longer errors: %d, %v", len(got), err)
	}
	offered := command.EncodeAssignments(projection.NewShard(0), []*projection.Task{&kept, &kept})[0].Data
	if got, err := command.DecodeAssignments(grownIn(t, offered, policyBytes(kept.Kind.Policy))); err != nil || len(got) != 2 || got[1].Policy != kept.Kind.Policy {
		t.Errorf("assignments of longer policies: %+v, %v", got, err)
	}
}
