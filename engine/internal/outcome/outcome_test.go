package outcome_test

import (
	"errors"
	"testing"

	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/task"
)

func TestOutcome_FailureBecomesATaskError(t *testing.T) {
	o := outcome.Outcome{Task: "a", Attempt: 3, Status: task.Failure, Err: &events.Error{Code: events.CodeCancelled, Message: "m", Retryable: true,
		Properties: map[string]string{"k": "v"}}}
	_, err := o.Value()
	var failure *task.Error
	if !errors.As(err, &failure) || !errors.Is(err, task.ErrCancelled) || failure.Task != "a" || failure.Attempt != 3 || failure.Message != "m" ||
		!failure.Retryable || failure.Properties["k"] != "v" {
		t.Errorf("%+v", err)
	}
}
