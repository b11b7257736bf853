// Package outcomes waits for tasks and prints what became of them.
package outcomes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"taskledger/api/operations"
	"taskledger/api/view"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/task"
)

// Await waits for tasks side by side, so that none of them uses up the time of another, and prints their outcomes in
// the order of the handles. A failed task is an error, as is one without an outcome when ctx ends.
func Await(ctx context.Context, out io.Writer, asJSON bool, handles []operations.Handle) error {
	type outcome struct {
		result []byte
		err    error
	}
	outcomes := make([]chan outcome, len(handles))
	for i, handle := range handles {
		outcomes[i] = make(chan outcome, 1)
		go func() {
			result, err := handle.Wait(ctx)
			handle.Close()
			outcomes[i] <- outcome{result, err}
		}()
	}
	var errs []error
	var late lateError
	for i, handle := range handles {
		o := <-outcomes[i]
		if _, failed := errors.AsType[*task.Error](o.err); o.err != nil && !failed && ctx.Err() != nil {
			late.add(handle.ID(), o.err)
			continue
		}
		errs = append(errs, tell(out, asJSON, handle.ID(), o.result, o.err))
	}
	if len(late.ids) > 0 {
		errs = append(errs, &late)
	}
	return errors.Join(errs...)
}

// mostNamed bounds the tasks that an error names.
const mostNamed = 5

// lateError reports tasks that were waited for until the time was over.
type lateError struct {
	ids   []string // of the first ones
	more  int
	cause error // of the first one
}

func (e *lateError) add(id events.TaskID, cause error) {
	if e.cause == nil {
		e.cause = cause
	}
	if len(e.ids) == mostNamed {
		e.more++
		return
	}
	e.ids = append(e.ids, string(id))
}

// Error names the first tasks.
func (e *lateError) Error() string {
	names := strings.Join(e.ids, ", ")
	if e.more > 0 {
		names += fmt.Sprintf(" and %d more", e.more)
	}
	return fmt.Sprintf("wait for %s: %v", names, e.cause)
}

// Unwrap returns why there is no outcome.
func (e *lateError) Unwrap() error { return e.cause }

// stacklessError is the failure of a function that panicked, without its stack.
type stacklessError struct {
	text string
	full error
}

// Error says where the stack is found.
func (e *stacklessError) Error() string { return e.text + "; get shows the stack" }

// Unwrap returns the failure.
func (e *stacklessError) Unwrap() error { return e.full }

// withoutStack returns an error whose text does not have the stack of a panic, which is many lines long.
func withoutStack(err error) error {
	if text, _, panicked := strings.Cut(err.Error(), "\ngoroutine "); panicked {
		return &stacklessError{text, err}
	}
	return err
}

// tell prints the outcome; a failed task is its error.
func tell(out io.Writer, asJSON bool, id events.TaskID, result []byte, err error) error {
	failed, isFailure := errors.AsType[*task.Error](err)
	if err != nil && !isFailure {
		return fmt.Errorf("wait for %s: %w", id, err)
	}
	if isFailure {
		err = withoutStack(err)
	}
	if asJSON {
		return errors.Join(err, output.New(out, true).Row(view.OfOutcome(id, result, failed)))
	}
	if len(result) > 0 {
		_, printed := fmt.Fprintf(out, "%s\n", output.CleanJSON(result))
		err = errors.Join(err, printed)
	}
	return err
}
