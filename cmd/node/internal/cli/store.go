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
	return (&storecli.Terminal{In: a.In, Err: a.Err, Print: a.print, Principal: principal, Ask: ask}).Command()
}
