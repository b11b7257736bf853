package task

import (
	"errors"
	"fmt"
	"time"

	"taskledger/events"
)

var (
	// ErrUnknownBehavior reports a raw submit for which no live node has the code. Nothing was accepted.
	ErrUnknownBehavior = errors.New("unknown behavior")
	// ErrNotFound reports that there is no such task, or no longer.
	ErrNotFound = errors.New("no such task")
	// ErrNotKept reports that the task has ended and been forgotten, and that nothing keeps what was trimmed from the journal.
	ErrNotKept = errors.New("outcome is no longer kept")
	// ErrClosed reports that the client or node has stopped, or was never run.
	ErrClosed = errors.New("client is closed")
	// ErrUnknown reports that a command may or may not have been accepted. Submit again with the same id.
	ErrUnknown = errors.New("outcome unknown")
	// ErrCancelled is what the Error of a cancelled task is.
	ErrCancelled = errors.New("task cancelled")
)

// Error is the failure of a task, equal on every node.
type Error struct {
	Task       events.TaskID
	Attempt    int
	Code       string // one of the events.Code constants or the behavior's own
	Message    string
	Retryable  bool
	Properties map[string]string
}

// Error returns task, code and message.
func (e *Error) Error() string {
	return fmt.Sprintf("task %s: %s: %s", e.Task, e.Code, e.Message)
}

// Is reports whether target is ErrCancelled and the task was cancelled.
func (e *Error) Is(target error) bool {
	return target == ErrCancelled && e.Code == events.CodeCancelled
}

// LimitError names the field and the limit that a request broke. Nothing was accepted.
type LimitError struct {
	Field      string
	Limit, Got int64
}

// Error names field, value and limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %d exceeds the limit of %d", e.Field, e.Got, e.Limit)
}

// StateError refuses a command that the task's present state does not allow. Nothing was changed.
type StateError struct {
	Task    events.TaskID
	Problem string // what was asked, and the state
}

// Error names the task, what was asked and the state.
func (e *StateError) Error() string { return fmt.Sprintf("task %s: %s", e.Task, e.Problem) }

// OverloadError refuses a submit; nothing was accepted.
type OverloadError struct {
	Cause      string
	RetryAfter time.Duration
}

// Error says why and how long to wait.
func (e *OverloadError) Error() string {
	return fmt.Sprintf("overloaded: %s; retry after %s", e.Cause, e.RetryAfter)
}
