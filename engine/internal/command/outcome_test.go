package command_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/task"
)

var genOutcome = rapid.Custom(func(t *rapid.T) outcome.Outcome {
	o := outcome.Outcome{Task: genID.Draw(t, "task"), Life: genRef.Draw(t, "life"), Run: rapid.Uint32().Draw(t, "run"), Ref: genRef.Draw(t, "ref"),
		Rest: rapid.Bool().Draw(t, "rest"), Attempt: rapid.Uint32().Draw(t, "attempt"), Status: rapid.SampledFrom([]task.Status{0, task.Success, task.Failure}).Draw(t, "status")}
	switch o.Status {
	case task.Success:
		if o.Elided = rapid.Bool().Draw(t, "elided"); !o.Elided {
			o.Result = genPayload.Draw(t, "result")
		}
	case task.Failure:
		o.Err = genError.Draw(t, "error")
	}
	return o
})

func TestOutcomes_AreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(genOutcome, 1, 5).Draw(t, "outcomes")
		messages := outcome.Encode(want)
		if len(messages) != 1 {
			t.Fatalf("%d messages", len(messages))
		}
		if got, err := outcome.Decode(messages[0]); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, want)
		}
	})
}

func TestOutcomes_LargeResultsAreLeftOutAndMessagesStayBounded(t *testing.T) {
	const largest = 4 << 10 // of the results that are sent along
	outcomes := make([]outcome.Outcome, 500)
	for i := range outcomes {
		outcomes[i] = outcome.Outcome{Task: events.TaskID(fmt.Sprint("t", i)), Status: task.Success, Result: make(events.Payload, largest+i%2)}
	}
	n := 0
	for _, m := range outcome.Encode(outcomes) {
		if len(m) > command.MaxAnswerBytes {
			t.Errorf("message of %d bytes", len(m))
		}
		got, err := outcome.Decode(m)
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

func TestOutcome_OfWhatIsTakenAwayEndsEveryRunThatWasPromised(t *testing.T) {
	for _, at := range []situation{atFailure, atFailureRetry, atSuccess, atSuccessNext} {
		for do, want := range map[task.Operation]task.Status{command.DoCancel: task.Failure, command.DoDelete: 0} {
			l := ledgerAt(t, at)
			later := l.ask(events.Policy{Existing: events.RunAgain})
			later.NotBefore = l.now.Add(time.Hour)
			promised, _ := l.decide(later)
			seen := len(l.outcomes)
			l.decide(&command.Operate{Task: ledgerTask, Do: do})
			if told := l.outcomes[seen:]; len(told) != 1 || !told[0].Ends(promised.Run) || told[0].Status != want {
				t.Errorf("%s, %s: %+v, want the end of run %d with status %d", at, do, told, promised.Run, want)
			}
		}
	}
}

func FuzzDecodeOutcomes(f *testing.F) {
	encode := func(all []outcome.Outcome) []byte {
		var w wire.Writer
		w.Array(len(all))
		for i := range all {
			all[i].Encode(&w, len(all[i].Result))
		}
		return w.B
	}
	fuzzed(f, outcome.Decode, encode, encode([]outcome.Outcome{{Task: "a", Status: task.Success, Result: []byte{1, 50}},
		{Task: "b", Status: task.Failure, Err: &events.Error{Code: "x"}}, {Task: "c", Elided: true, Status: task.Success}}))
}
