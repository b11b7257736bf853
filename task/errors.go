package task

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"taskledger/events"
)

var (
	// ErrUnknownBehavior reports a submit by name of a behavior that no live node has. Nothing was accepted.
	ErrUnknownBehavior = errors.New("unknown behavior")
	// ErrNotFound reports that there is no such task: it never was, it was deleted, or, where owners alone are asked,
	// retention has removed it from memory.
	ErrNotFound = errors.New("no such task")
	// ErrNotKept reports that the task has ended and retention has removed it, and that its journal entries were
	// trimmed and not archived.
	ErrNotKept = errors.New("outcome is no longer kept")
	// ErrClosed reports that the client or node has stopped, that the future was closed, or that Run was called twice.
	// A call that is made before Run waits for it, and ends with store.ErrUnavailable if its context ends first.
	ErrClosed = errors.New("client is closed")
	// ErrUnknown reports that a command was sent and not answered: it may have been accepted or not. Submit again
	// with the same id, or key.
	ErrUnknown = errors.New("outcome unknown")
	// ErrNoNode reports that no node has been alive for as long as the caller waits for one, 3 s unless AwaitNodes
	// asks for more. It is the cause of an error that wraps store.ErrUnavailable or, of a command that had left before
	// that was known, ErrUnknown.
	ErrNoNode = errors.New("no node is alive (one without slots, serve --slots 0, is enough to take tasks)")
	// ErrOtherRequest reports that the key of a submit stands for another request, of other parameters or options. It
	// comes with a *StateError: nothing was changed.
	ErrOtherRequest = errors.New("the request key stands for another request")
	// ErrNoneSubmitted reports that a request was not submitted because of another one of those that were to be
	// submitted together.
	ErrNoneSubmitted = errors.New("none is submitted")
	// ErrCancelled matches the Error of a cancelled task, by errors.Is.
	ErrCancelled = errors.New("task cancelled")
)

// Error is the failure of a task, the same for every caller in every process.
type Error struct {
	Task       events.TaskID
	Attempt    int    // its number within the life of the task, from 1 on
	Code       string // one of the events.Code constants or the behavior's own
	Message    string
	Retryable  bool // another attempt may succeed; whether one follows it does not say
	Properties map[string]string
}

// Error returns the task, the code and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("task %s: %s: %s", e.Task, e.Code, e.Message)
}

// Is reports whether target is ErrCancelled and the task was cancelled.
func (e *Error) Is(target error) bool {
	return target == ErrCancelled && e.Code == events.CodeCancelled
}

// LimitError reports that a field of a request exceeds a limit, or is below 0. Nothing was accepted.
type LimitError struct {
	Field      string
	Limit, Got int64 // bytes of a text; of a number or a list its value or length
}

// numbers are the fields whose value is a number, or which are counted; every other one is a text.
var numbers = []string{
	"priority", "delay_ms", "limit", "requests", "behaviors", "attempts", "keep", "ticks", "number of error properties",
}

// Error names the field, its value or its size in bytes, and the limit.
func (e *LimitError) Error() string {
	if e.Got < 0 {
		return fmt.Sprintf("%s: %d, want 0 to %d", e.Field, e.Got, e.Limit)
	}
	if !slices.Contains(numbers, e.Field) {
		return fmt.Sprintf("%s: %d exceeds the limit of %d bytes", e.Field, e.Got, e.Limit)
	}
	return fmt.Sprintf("%s: %d exceeds the limit of %d", e.Field, e.Got, e.Limit)
}

// StateError reports a command that the present state of the task does not allow. Nothing was changed.
type StateError struct {
	Task    events.TaskID // "" = the error that wraps this one names it
	Problem string        // what was asked, and the state
	Changed bool          // the task has had another event since the caller saw it
}

// Error names the task, what was asked and the state.
func (e *StateError) Error() string {
	if e.Task == "" {
		return e.Problem
	}
	return fmt.Sprintf("task %s: %s", e.Task, e.Problem)
}

// OverloadError reports that a submit was refused for lack of room or time. Nothing was accepted; submit again after
// RetryAfter.
type OverloadError struct {
	Cause      string        // tells people where room or time is lacking
	RetryAfter time.Duration // how long to wait before the next try
}

// Error says why the submit was refused and how long to wait.
func (e *OverloadError) Error() string {
	return fmt.Sprintf("overloaded: %s; retry after %s", e.Cause, e.RetryAfter)
}
