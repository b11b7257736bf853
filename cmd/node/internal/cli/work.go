package cli

import (
	"context"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/workcli"
)

func (a *app) workCommand() *cobra.Command {
	ask := func(c *cobra.Command, run func(context.Context, operations.Works, []string) error) *cobra.Command {
		return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, args []string) error {
			return run(ctx, client.Works(), args)
		})
	}
	return (&workcli.Terminal{
		Err:      a.Err,
		Print:    a.print,
		Ask:      ask,
		Complete: a.completeTasks,
	}).Command()
}
