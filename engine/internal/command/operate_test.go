package command_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

func TestOperate_OnEveryState(t *testing.T) {
	const no = "refused"
	table := map[task.Operation]map[situation]string{
		command.DoCancel: {atRerunCancel: "", atCreated: "Failed", atDelayed: "Failed", atRunning: "CancelRequested", atRerun: "CancelRequested", atCancelled: "",
			atWaiting: "Failed", atSuccess: no, atSuccessNext: "Rescheduled", atFailure: no, atFailureRetry: "Rescheduled"},
		command.DoRunNow: {atRerunCancel: no, atCreated: "", atDelayed: "Rescheduled", atRunning: no, atRerun: no, atCancelled: no,
			atWaiting: "", atSuccess: no, atSuccessNext: "Rescheduled", atFailure: no, atFailureRetry: "Rescheduled"},
		command.DoRetry: {atRerunCancel: no, atCreated: no, atDelayed: no, atRunning: no, atRerun: no, atCancelled: no,
			atWaiting: no, atSuccess: "Rescheduled", atSuccessNext: "Rescheduled", atFailure: "Rescheduled", atFailureRetry: "Rescheduled"},
		command.DoSuspend: {atRerunCancel: "Suspended", atCreated: "Suspended", atDelayed: "Suspended", atRunning: "Suspended", atRerun: "Suspended", atCancelled: "Suspended",
			atWaiting: "Suspended", atSuccess: no, atSuccessNext: "Suspended", atFailure: no, atFailureRetry: "Suspended"},
		command.DoResume: {},
		command.DoDelete: {atRerunCancel: no, atCreated: "Deleted", atDelayed: "Deleted", atRunning: no, atRerun: no, atCancelled: no,
			atWaiting: no, atSuccess: "Deleted", atSuccessNext: "Deleted", atFailure: "Deleted", atFailureRetry: "Deleted"},
	}
	for do := range task.OperationCount {
		for _, at := range situations[1:] {
			l := ledgerAt(t, at)
			a, kinds := l.decide(&command.Operate{Task: ledgerTask, Do: do})
			want := table[do][at]
			if want == no {
				if a.Code != command.AnswerState || kinds != nil || !strings.Contains(a.Text, do.String()) {
					t.Errorf("%s while %s: answer %+v with events %v, want a refusal that names it", do, at, a, kinds)
				}
				continue
			}
			if got := strings.Join(kinds, " "); a.Code != command.AnswerOK || got != want {
				t.Errorf("%s while %s: answer %+v with events %q, want %q", do, at, a, got, want)
			}
		}
		if a, kinds := newJournalDriver(t).decide(&command.Operate{Task: ledgerTask, Do: do}); a.Code != command.AnswerNotFound || kinds != nil {
			t.Errorf("%s of nothing: answer %+v with events %v, want not found", do, a, kinds)
		}
	}
}

func TestOperate_OfATaskThatHasAnotherEventSinceItWasSeenDoesNothing(t *testing.T) {
	for do := range task.OperationCount {
		for _, at := range situations[1:] {
			plain, wantKinds := ledgerAt(t, at).decide(&command.Operate{Task: ledgerTask, Do: do})
			l := ledgerAt(t, at)
			seen := l.task().Last
			if a, kinds := l.decide(&command.Operate{Task: ledgerTask, Do: do, Seen: seen}); a.Code != plain.Code || !slices.Equal(kinds, wantKinds) {
				t.Errorf("%s while %s, as it was seen: answer %+v with events %v, want %+v with %v", do, at, a, kinds, plain, wantKinds)
			}
			if l.task() != nil && l.task().Last == seen {
				continue
			}
			if a, kinds := l.decide(&command.Operate{Task: ledgerTask, Do: do, Seen: seen}); l.task() != nil && a.Code != command.AnswerChanged || kinds != nil {
				t.Errorf("%s once more, as it was seen while %s: answer %+v with events %v, want nothing done", do, at, a, kinds)
			}
		}
	}
}

// What no release knows must not be taken for what comes last among the operations, which is to delete.
func TestOperate_ThatThereIsNotIsRefusedByFieldAndChangesNothing(t *testing.T) {
	for _, do := range []task.Operation{task.OperationCount, 77, math.MaxUint64} {
		c := &command.Operate{Task: ledgerTask, Do: do}
		if invalid, is := errors.AsType[*store.InvalidError](command.Check(c)); !is || invalid.Field != "operation" || !strings.Contains(invalid.Problem, "want less than 6") {
			t.Errorf("%s: %v", do, command.Check(c))
		}
		sent := &command.Batch{Sender: "c-1", Number: 1, Commands: []command.Command{c}}
		if got, err := commands.Table.DecodeBatch(sent.Encode()); err != nil || !reflect.DeepEqual(got, sent) {
			t.Errorf("%s of a sender that does not check is read as %+v, %v: it has to be answered", do, got, err)
		}
		for _, at := range situations[1:] {
			if a, kinds := ledgerAt(t, at).decide(c); a.Code == command.AnswerOK || kinds != nil {
				t.Errorf("%s while %s: answer %+v with events %v", do, at, a, kinds)
			}
		}
	}
}

func TestOperate_ReasonOfACancelIsRecordedInEveryState(t *testing.T) {
	const why = "the table is gone"
	for _, at := range situations[1:] {
		l := ledgerAt(t, at)
		a, kinds := l.decide(&command.Operate{Task: ledgerTask, Do: command.DoCancel, Reason: why})
		if a.Code != command.AnswerOK || kinds == nil {
			continue
		}
		told := ""
		switch body := l.log[len(l.log)-1].Body.(type) {
		case *events.Failed:
			told = body.Error.Message
		case *events.CancelRequested:
			told = body.Reason
		case *events.Rescheduled:
			told = body.Reason
		}
		if told != why {
			t.Errorf("while %s: %s tells the reason %q", at, kinds[0], told)
		}
	}
}

func TestOperate_SuspendAndResumeTwiceIsOnce(t *testing.T) {
	l := ledgerAt(t, atCreated)
	for _, step := range []struct {
		do   task.Operation
		want string
	}{{command.DoSuspend, "Suspended"}, {command.DoSuspend, ""}, {command.DoResume, "Resumed"}, {command.DoResume, ""}} {
		if _, kinds := l.decide(&command.Operate{Task: ledgerTask, Do: step.do}); strings.Join(kinds, "") != step.want {
			t.Errorf("%s led to %v, want %q", step.do, kinds, step.want)
		}
	}
}
