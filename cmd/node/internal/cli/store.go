package cli

import (
	"context"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/storecli"
)

func (a *app) storeCommand() *cobra.Command {
	ask := func(c *cobra.Command, waits func() bool, run func(context.Context, operations.Stores, []string) error) *cobra.Command {
		return a.clientCommand(c, waits, func(ctx context.Context, client operations.Client, args []string) error {
			return run(ctx, client.Stores(), args)
		})
	}
	find := func(
		cmd *cobra.Command, words func(context.Context, operations.Stores) []string,
	) ([]string, cobra.ShellCompDirective) {
		return a.complete(cmd, func(ctx context.Context, client operations.Client) []string {
			return words(ctx, client.Stores())
		})
	}
	return (&storecli.Terminal{
		In:        a.In,
		Err:       a.Err,
		Print:     a.print,
		Principal: principal,
		Ask:       ask,
		Find:      find,
	}).Command()
}
