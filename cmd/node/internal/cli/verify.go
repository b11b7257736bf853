package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/progress"
)

func (a *app) verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check the whole journal and what the owners serve",
		Long: `Verify reads every entry of every shard and checks that none is missing, that each continues the hash chain, that every
transition is legal, and that what the shard's owner serves equals the fold of its journal. A shard that changes
meanwhile may count as not compared, which is no fault. Exit code 1 means that something was found.`,
		Args: cobra.NoArgs,
	}
	return a.clientCommand(c, always, func(ctx context.Context, client Client, _ []string) error {
		return a.verify(ctx, client)
	})
}

func (a *app) verify(ctx context.Context, client Observer) error {
	shards, err := client.Shards(ctx)
	if err != nil {
		return err
	}
	var total, done int64
	for _, s := range shards {
		total += int64(s.Entries)
	}
	bar := progress.NewBar(a.Err, "entries")
	found, err := client.Verify(ctx, func(shard int, _ uint64) {
		done++
		bar.Show(done, max(total, done), fmt.Sprintf("shard %d", shard))
	})
	bar.Done()
	if err != nil {
		return err
	}
	p := a.print("SHARD", "ENTRIES", "EVENTS", "TASKS", "COMPARED", "HASH", "PROBLEM")
	damaged := 0
	for _, v := range found {
		if v.Problem != "" {
			damaged++
		}
		if err := p.row(v, v.Shard, v.Entries, v.Events, v.Tasks, v.Compared, v.Hash.String()[:16], v.Problem); err != nil {
			return err
		}
	}
	if damaged > 0 {
		err = fmt.Errorf("%d of %d shards have problems", damaged, len(found))
	}
	return errors.Join(err, p.flush())
}
