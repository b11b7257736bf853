package command_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/internal/wire"
)

var genAnswer = rapid.Custom(func(t *rapid.T) command.Answer {
	a := command.Answer{Code: command.AnswerCode(rapid.IntRange(0, int(command.AnswerKeyUsed)).Draw(t, "code")), Life: genRef.Draw(t, "life"), Run: rapid.Uint32().Draw(t, "run")}
	if rapid.Bool().Draw(t, "long") {
		a.Repeated = rapid.Bool().Draw(t, "repeated")
		a.Joined, a.Text, a.Number, a.Data = rapid.Bool().Draw(t, "joined"), genText.Draw(t, "text"), rapid.Int64().Draw(t, "number"), genPayload.Draw(t, "data")
	}
	return a
})

func TestAnswers_AreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answers := rapid.SliceOfN(genAnswer, 0, 5).Draw(t, "answers")
		got, err := command.DecodeAnswers(command.EncodeAnswers(answers))
		if err != nil || len(got) != len(answers) || len(got) > 0 && !reflect.DeepEqual(got, answers) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, answers)
		}
		b := &command.Batch{Lane: rapid.Uint8Range(0, command.LaneCount-1).Draw(t, "lane"), Number: rapid.Uint64().Draw(t, "number")}
		shard, lane, number, message, recorded, err := command.DecodeAnswerMessage(command.EncodeAnswerMessage(200, b, answers, true))
		if err != nil || shard != 200 || lane != b.Lane || number != b.Number || !recorded || !reflect.DeepEqual(message, got) {
			t.Fatalf("message read as %d, %d, %d, %+v, %v", shard, lane, number, message, err)
		}
	})
}

func TestAnswerMessage_AcknowledgementIsNoAnswer(t *testing.T) {
	for _, answers := range [][]command.Answer{nil, {}} {
		_, _, _, got, _, err := command.DecodeAnswerMessage(command.EncodeAnswerMessage(1, &command.Batch{Number: 1}, answers, false))
		if err != nil || (got == nil) != (answers == nil) {
			t.Errorf("%#v is read as %#v, %v", answers, got, err)
		}
	}
}

// Whoever does not know the code of an answer would ask for it again and again.
func TestAnswers_WithACodeOfALaterReleaseAreReadAsRefusals(t *testing.T) {
	for _, code := range []uint64{uint64(command.AnswerForgotten) + 1, 255, 256, 1 << 40} {
		var w wire.Writer
		w.Array(2)
		for _, text := range []string{"", "the moon is full"} {
			if text == "" {
				w.Array(3)
			} else {
				w.Array(9)
			}
			w.Uint(code)
			w.Uint(7)
			w.Uint(1)
			if text != "" {
				w.Bool(false)
				w.Bool(false)
				w.Text(text)
				w.Int(0)
				w.Bytes(nil)
				w.Text("a field more")
			}
		}
		want := []command.Answer{{Code: command.AnswerState, Life: 7, Run: 1, Text: fmt.Sprintf("answer %d of a later release", code)},
			{Code: command.AnswerState, Life: 7, Run: 1, Text: "the moon is full"}}
		got, err := command.DecodeAnswers(w.B)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("code %d: read as %+v, %v; want %+v", code, got, err, want)
		}
	}
}

func FuzzDecodeAnswers(f *testing.F) {
	fuzzed(f, command.DecodeAnswers, command.EncodeAnswers, []byte{0x91, 0x93, 0xcc, 0xc8, 0x01, 0x01}, command.EncodeAnswers([]command.Answer{{}, command.Refused(command.AnswerState, "no"), {Data: []byte{1}, Joined: true, Run: 3}}))
}

// answerMessage holds the content of an answer message.
type answerMessage struct {
	shard   int
	lane    uint8
	number  uint64
	answers []command.Answer

	recorded bool
}

func decodeMessage(data []byte) (m answerMessage, err error) {
	m.shard, m.lane, m.number, m.answers, m.recorded, err = command.DecodeAnswerMessage(data)
	return m, err
}

func FuzzDecodeAnswerMessage(f *testing.F) {
	fuzzed(f, decodeMessage, func(m answerMessage) []byte {
		return command.EncodeAnswerMessage(m.shard, &command.Batch{Lane: m.lane, Number: m.number}, m.answers, m.recorded)
	}, command.EncodeAnswerMessage(3, &command.Batch{Lane: 1, Number: 9}, nil, false), command.EncodeAnswerMessage(3, &command.Batch{Lane: 1, Number: 9}, []command.Answer{{}, {Text: "x"}}, true))
}
