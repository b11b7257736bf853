package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/schedulecli"
	"taskledger/cmd/node/internal/suggest"
)

func (a *app) scheduleCommand() *cobra.Command {
	ask := func(c *cobra.Command, run func(context.Context, schedulecli.Client, []string) error) *cobra.Command {
		return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, args []string) error {
			return run(ctx, client, args)
		})
	}
	return (&schedulecli.Terminal{
		In:        a.In,
		Err:       a.Err,
		Print:     a.print,
		Now:       time.Now,
		Ask:       ask,
		Complete:  a.completeSchedules,
		Behaviors: a.completeBehaviors,
	}).Command()
}

func (a *app) completeSchedules(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.complete(cmd, func(ctx context.Context, client operations.Client) []string {
		return suggest.Schedules(ctx, client, "")
	})
}
