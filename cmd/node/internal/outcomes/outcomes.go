// Package outcomes waits for tasks and prints what became of them.
package outcomes

import (
	"context"
	"errors"
	"fmt"
	"io"

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
	for i, handle := range handles {
		o := <-outcomes[i]
		errs = append(errs, tell(out, asJSON, handle.ID(), o.result, o.err))
	}
	return errors.Join(errs...)
}

// tell prints the outcome; a failed task is its error.
func tell(out io.Writer, asJSON bool, id events.TaskID, result []byte, err error) error {
	failed, isFailure := errors.AsType[*task.Error](err)
	if err != nil && !isFailure {
		return fmt.Errorf("wait for %s: %w", id, err)
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
