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
		Print: a.print,
		Err:   a.Err,
		Sleep: sleep,
		Ask:   ask,
		Example: a.examples(
			example{"what it says now", []string{"logs", "report/2026-11", "--follow"}},
			example{"what went wrong", []string{"logs", "report/2026-11", "--level", "error"}}),
		Complete: a.completeTasks,
	}).Command()
}
