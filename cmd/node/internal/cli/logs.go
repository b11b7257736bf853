package cli

import (
	"context"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/logcli"
)

func (a *app) logsCommand() *cobra.Command {
	ask := func(
		c *cobra.Command, waits func() bool, run func(context.Context, operations.Logs, []string) error,
	) *cobra.Command {
		return a.clientCommand(c, waits, func(ctx context.Context, client operations.Client, args []string) error {
			return run(ctx, client, args)
		})
	}
	return (&logcli.Terminal{
		Print:    a.print,
		Err:      a.Err,
		Sleep:    sleep,
		Ask:      ask,
		Complete: a.completeTasks,
	}).Command()
}
