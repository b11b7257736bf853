package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/stats"
)

func (a *app) statsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "stats",
		Short: "Show what was done of each behavior, how late and how long",
		Long: `Stats sums over all shards what their owners have committed since they took them over, by behavior: tasks created, attempts
started, succeeded and failed, FINAL failures that are not tried again, attempts lost, snoozed and released, tasks deleted,
submits refused. When a shard moves to another node its counts begin anew; the history of everything is in replay.
LATE is how long after its time an attempt started, WAIT how long after its creation a task did, TOOK how long attempts took
that succeeded or failed: the medians and the 99th percentiles, estimated from counts by size.
Of more than 100 behaviors of a shard those that came last share the row (other). A shard that does not answer is named, and
what it holds is not counted.`,
		Args: flags.NoArguments,
	}
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, _ []string) error {
		ask, stop := context.WithTimeout(ctx, silentAfter(ctx, time.Now()))
		defer stop()
		shards, err := client.Shards(ask)
		if err != nil {
			return err
		}
		if err := noNode(shards); err != nil {
			return err
		}
		return stats.Show(a.print(stats.Columns...), shards)
	})
}
