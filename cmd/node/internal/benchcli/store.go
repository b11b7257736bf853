package benchcli

import (
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench/overstore"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

func (t *Terminal) storeCommand() *cobra.Command {
	var cfg overstore.Config
	var bounds overstore.Bounds
	c := &cobra.Command{
		Use:   "store",
		Short: "Measure a task store against tasks of the same shard",
		Long: `Store runs two nodes on temporary data, as bench does. Windows in which workers claim an item and replace it by another alternate with
windows in which as many callers submit noop tasks of the same shard and wait for them, and with windows of cycles in a store of 1,000 items.
Callers are at the node that owns the shard; tasks run at the other one. Then claims wait for items that are added one by one, alone and
beside claims that wait on the other node.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Workers < 1 || cfg.Depth < cfg.Workers || cfg.Parked < 0 {
				return &exitcode.UsageError{Problem: "want --workers of 1 or more, --depth of as many at least, and --parked of 0 or more"}
			}
			r, err := overstore.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := t.printFields(r); err != nil {
				return err
			}
			return r.Within(bounds)
		},
	}
	f := c.Flags()
	f.DurationVar(&cfg.Duration, "duration", 20*time.Second, "time of all windows together; a window takes at least 2s")
	f.IntVar(&cfg.Workers, "workers", 64, "workers who claim and replace items at once, and callers who submit tasks")
	f.IntVar(&cfg.Depth, "depth", 10_000, "items that are there")
	f.IntVar(&cfg.Parked, "parked", 1000, "claims that wait on the other node for what never comes")
	f.BoolVar(&cfg.Away, "away", false, "take a shard that the other node owns, and whose tasks it runs")
	f.Float64Var(&bounds.DepthRatio, "min-depth-ratio", 0, "fail when there are fewer cycles per cycle in a store of 1,000 items; 0 = never")
	f.Float64Var(&bounds.Ratio, "min-ratio", 0, "fail when there are fewer cycles per task; 0 = never")
	f.DurationVar(&bounds.Wake, "max-wake", 0, "fail when a claim that waits is answered later than this after its item was added, p99; 0 = never")
	return c
}
