package command_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/task"
)

// raw is a command as its bytes, which follow the number.
func raw(op uint64, value []byte) *command.Unknown { return &command.Unknown{Number: op, Raw: value} }

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
	}
	for name, c := range later {
		for _, lane := range []uint8{command.LaneSubmit, command.LaneQuery} {
			want := batchIn(lane, &command.Info{}, c, &command.Operate{Task: "a/b"})
			if got, err := command.DecodeBatch(want.Encode()); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: read as %+v, %v; want %+v", name, got, err, want)
			}
		}
		for _, lane := range []uint8{command.LaneWork, command.LaneOffer} { // they wait for an owner that knows them
			if got, err := command.DecodeBatch(batchIn(lane, c).Encode()); err == nil {
				t.Errorf("%s: read in lane %d as %+v", name, lane, got)
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
		"operation":       &command.Operate{Do: task.OperationCount},
		"bytes after one": raw(new(command.Barrier).Op(), []byte{0xc4, 0x03, 0x91, 0x01, 0x01}),
	} {
		if got, err := command.DecodeBatch(batchIn(command.LaneSubmit, unknown, c).Encode()); err == nil {
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
	grow := func(value []byte) []byte { // an array of few with a value more
		return append(append([]byte{value[0] + 1}, value[1:]...), 0x93, 0xc0, 0x81, 0xa1, 'k', 0x01, 0xc4, 0x01, 'x')
	}
	one := func(value []byte) []byte { return append([]byte{0x91}, value...) }
	var outcome, assignment wire.Writer
	o := command.Outcome{Task: "a", Status: 2, Result: events.JSON([]byte("1"))}
	o.Encode(&outcome, 100)
	a := command.Assignment{AttemptName: command.AttemptName{Task: "a", Started: 1}, Behavior: "work", Number: 3}
	a.Encode(&assignment)
	if got, err := command.DecodeOutcomes(one(grow(outcome.B))); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], o) {
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
	if got, err := command.ReadTold[gossip](grow(message.Encode(told))); err != nil || got != told {
		t.Errorf("gossip is read as %+v, %v; want %+v", got, err, told)
	}
	if got, err := command.ReadMessage[command.PlanLetter](grow(message.Encode(command.PlanLetter{Planners: []string{"n"}}))); err == nil {
		t.Errorf("a letter that asks is read as %+v", got)
	}
}
