package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/suggest"
)

func (a *app) countsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "counts",
		Short: "Show how many tasks there are, by behavior, status and substatus",
		Long: `Counts shows how many tasks of each behavior have each status and substatus, of those that get and list show without reading
the journal. A shard that has not answered after 3 seconds is named, and what it holds is not counted.`,
		Args: flags.NoArguments,
	}
	var behavior string
	c.Flags().StringVar(&behavior, "behavior", "", "tasks of this behavior alone")
	a.completeFlag(c, "behavior", a.completeBehaviors)
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, _ []string) error {
		all, err := client.Counts(ctx, behavior)
		if err != nil {
			return err
		}
		if len(all.Rows) == 0 {
			suggest.Nothing(ctx, a.Err, client, behavior, "")
		}
		var errs []error
		p := a.print("BEHAVIOR", "STATUS", "SUBSTATUS", "TASKS")
		for _, n := range all.Rows {
			errs = append(errs, p.Row(n, cmp.Or(n.Behavior, "(others)"), n.Status, n.Substatus, n.Tasks))
		}
		for _, m := range all.Missing {
			errs = append(errs, m.Err)
		}
		return errors.Join(append(errs, p.Flush())...)
	})
}
