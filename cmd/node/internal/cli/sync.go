package cli

import (
	"context"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/logcli"
	"taskledger/cmd/node/internal/suggest"
	"taskledger/cmd/node/internal/synccli"
	"taskledger/collections"
)

func (a *app) syncCommand() *cobra.Command {
	ask := func(
		c *cobra.Command, waits func() bool, run func(context.Context, *synccli.Client, []string) error,
	) *cobra.Command {
		return a.clientCommand(c, waits, func(ctx context.Context, client operations.Client, args []string) error {
			return run(ctx, &synccli.Client{
				Schedules: client.Schedules(),
				Stores:    client.Stores(),
				Nodes:     client,
				Shards:    shardsOf(client),
				Runs:      client,
			}, args)
		})
	}
	return (&synccli.Terminal{
		In:        a.In,
		Err:       a.Err,
		Print:     a.print,
		Principal: principal,
		Ask:       ask,
		Await: func(ctx context.Context, client *synccli.Client, run operations.Handle) error {
			defer a.tellNoNode(ctx, client.Nodes)()
			return a.await(ctx, run)
		},
		Complete: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return a.complete(cmd, func(ctx context.Context, client operations.Client) []string {
				return suggest.Schedules(ctx, client, collections.Behavior)
			})
		},
		Logs: &logcli.Terminal{Print: a.print, Err: a.Err, Sleep: sleep},
	}).Command()
}
