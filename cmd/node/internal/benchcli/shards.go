package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

func (t *Terminal) shardsCommand() *cobra.Command {
	var cfg bench.ShardsConfig
	var minRatio float64
	c := &cobra.Command{
		Use:   "shards",
		Short: "Compare a backlog in many shards with one in few",
		Long: `Shards runs two clusters on temporary data, one of few shards and one of many, each with one node of few slots. Windows in which
the one works off a backlog that is spread over all of its shards alternate with windows of the other.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Behaviors < 1 || cfg.Slots < 1 || cfg.InFlight < 1 {
				return &exitcode.UsageError{Problem: "want one behavior, slot and task in flight or more"}
			}
			r, err := bench.Shards(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := t.printFields(r); err != nil {
				return err
			}
			if r.Ratio < minRatio {
				return fmt.Errorf("ratio %.2f is below the %.2f asked for", r.Ratio, minRatio)
			}
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.Few, "few", 16, "shards of the one cluster")
	f.IntVar(&cfg.Many, "many", 256, "shards of the other")
	f.IntVar(&cfg.Behaviors, "behaviors", 10, "kinds of tasks, of which every shard has some")
	f.IntVar(&cfg.Slots, "slots", 4, "attempts at once")
	f.IntVar(&cfg.InFlight, "in-flight", 4000, "tasks under way at any time")
	f.DurationVar(&cfg.Duration, "duration", 20*time.Second, "time of all windows together; a window takes at least 2s")
	f.Float64Var(&minRatio, "min-ratio", 0, "fail when many shards make fewer tasks for each that few make; 0 = never")
	return c
}
