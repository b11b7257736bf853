package command_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/internal/wire"
)

func TestAssignments_AreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w wire.Writer
		want := make([]command.Assignment, rapid.IntRange(0, 4).Draw(t, "count"))
		w.Array(len(want))
		for i := range want {
			want[i] = command.Assignment{AttemptName: command.AttemptName{genID.Draw(t, "task"), genRef.Draw(t, "started")}, Behavior: genText.Draw(t, "behavior"),
				Number: rapid.Uint32().Draw(t, "number"), Failures: rapid.Uint32().Draw(t, "failures"), Lost: rapid.Uint32().Draw(t, "lost"),
				Policy: genPolicy.Draw(t, "policy"), Params: genPayload.Draw(t, "params"), ParamsAt: genRef.Draw(t, "params at"), Life: genRef.Draw(t, "life")}
			want[i].Encode(&w)
		}
		got, err := command.DecodeAssignments(w.B)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, want)
		}
		names := genAttempts.Draw(t, "names")
		if got, err := command.DecodeNames(command.EncodeNames(names)); err != nil || !reflect.DeepEqual(got, names) {
			t.Fatalf("names read as %+v, %v; want %+v", got, err, names)
		}
	})
}

func FuzzDecodeAssignments(f *testing.F) {
	encode := func(all []command.Assignment) []byte {
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
	fuzzed(f, command.DecodeAssignments, encode, encode([]command.Assignment{{Behavior: "work", Params: []byte{1, 50}}, {}}))
}
