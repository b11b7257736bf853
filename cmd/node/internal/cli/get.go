package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/rows"
	"taskledger/events"
	"taskledger/task"
)

func (a *app) getCommand() *cobra.Command {
	var forgotten bool
	c := &cobra.Command{
		Use:   "get ID...",
		Short: "Show tasks with parameters and result",
		Long: `Get shows tasks with parameters and result, as the owners of their shards have them. One that retention has forgotten is looked
for with --forgotten alone: it is read from the journal and the archive, as history reads it, and shown as it was last. That
takes longer, also where there is no such task.`,
		Args:              flags.Arguments,
		ValidArgsFunction: a.completeTasks,
	}
	c.Flags().BoolVar(&forgotten, "forgotten", false,
		"look in the journal and the archive, too, for tasks that are no longer kept")
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, args []string) error {
		get := client.Get
		if forgotten {
			get = client.GetForgotten
		}
		var errs []error
		p := a.print()
		for _, id := range args {
			t, err := get(ctx, events.TaskID(id))
			switch {
			case err == nil:
				err = rows.Task(p, t)
			case !forgotten:
				err = orForgotten(err)
			}
			errs = append(errs, err)
		}
		return errors.Join(append(errs, p.Flush())...)
	})
}

// orForgotten adds to the error of a task that was not found where else it may be.
func orForgotten(err error) error {
	if !errors.Is(err, task.ErrNotFound) {
		return err
	}
	return fmt.Errorf("%w, or it is no longer kept: get --forgotten looks for it in the journal and the archive", err)
}
