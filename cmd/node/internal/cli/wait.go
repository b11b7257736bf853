package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/operations"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/view"
	"taskledger/engine"
	"taskledger/events"
)

func (a *app) waitCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "wait ID...",
		Short: "Wait for outcomes and print the results",
		Long: `Wait prints the result of each task as JSON text, and nothing for a task without result. It ends with exit code 1 when a
task failed, with 4 when --timeout passed.`,
		Args:              flags.Arguments,
		Example:           a.examples(example{"for at most a minute", []string{"wait", "report/2026-11", "--timeout", "1m"}}),
		ValidArgsFunction: a.completeTasks,
	}
	return a.clientCommand(c, always, func(ctx context.Context, client operations.Client, args []string) error {
		var errs []error
		for _, id := range args {
			errs = append(errs, a.await(ctx, client.Attach(events.TaskID(id))))
		}
		return errors.Join(errs...)
	})
}

// await prints the outcome; a failed task is its error.
func (a *app) await(ctx context.Context, handle operations.Handle) error {
	result, err := handle.Wait(ctx)
	failed, isFailure := errors.AsType[*engine.TaskError](err)
	if err != nil && !isFailure {
		return fmt.Errorf("wait for %s: %w", handle.ID(), err)
	}
	p := a.print()
	if p.IsJSON() {
		return errors.Join(err, p.Row(view.OfOutcome(handle.ID(), result, failed)))
	}
	if len(result) > 0 {
		_, printed := fmt.Fprintf(a.Out, "%s\n", output.CleanJSON(result))
		err = errors.Join(err, printed)
	}
	return err
}
