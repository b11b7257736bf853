package traffic_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/store"
	"taskledger/task"
)

func TestAnswer_TellsDoneFromUnknown(t *testing.T) {
	for _, row := range []struct {
		err  error
		want history.Answer
	}{
		{nil, history.OK},
		{task.ErrNotFound, history.Absent},
		{task.ErrNotKept, history.Absent},
		{&task.StateError{}, history.Refused},
		{&store.InvalidError{}, history.Refused},
		{&task.OverloadError{}, history.Refused},
		{&task.LimitError{}, history.Refused},
		{store.ErrUnavailable, history.Refused},
		{task.ErrClosed, history.Refused},
		{task.ErrUnknown, history.Unknown},
		{fmt.Errorf("%w: %w", task.ErrUnknown, task.ErrClosed), history.Unknown},
		{context.DeadlineExceeded, history.Unknown},
		{errors.New("anything"), history.Unknown},
	} {
		if row.err != nil {
			row.err = fmt.Errorf("task a: %w", row.err)
		}
		if got := traffic.Answer(row.err); got != row.want {
			t.Errorf("%v: %s, want %s", row.err, got, row.want)
		}
	}
}

func TestOutcome_IsThatOfTheRun(t *testing.T) {
	if o, err := traffic.Outcome([]byte("1"), nil); o != "=1" || err != nil {
		t.Errorf("success: %q, %v", o, err)
	}
	if o, err := traffic.Outcome(nil, &task.Error{Code: "no"}); o != "!no" || err != nil {
		t.Errorf("failure: %q, %v", o, err)
	}
	if o, err := traffic.Outcome(nil, context.Canceled); o != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("nothing: %q, %v", o, err)
	}
	failed := &events.Error{Code: "no"}
	for _, row := range []struct {
		task task.Task
		want string
	}{
		{task.Task{Status: task.Running}, ""},
		{task.Task{Status: task.Success, Result: []byte("1")}, "=1"},
		{task.Task{Status: task.Failure, Error: failed, Details: task.Details{RunEnded: true}}, "!no"},
		{task.Task{Status: task.Failure, Error: failed}, ""},
	} {
		if o := traffic.OutcomeOf(&row.task); o != row.want {
			t.Errorf("%s: %q, want %q", row.task.Status, o, row.want)
		}
	}
}
