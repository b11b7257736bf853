package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

func (t *Terminal) utilizationCommand() *cobra.Command {
	var cfg bench.UtilizationConfig
	var least float64
	c := &cobra.Command{
		Use:   "utilization",
		Short: "Measure how well few slots are used while work waits",
		Long: `Utilization runs nodes with few slots on temporary data and keeps more tasks waiting than there are slots. It tells for
which share of their time the slots ran a task; the rest is the way of an outcome to the owner and of the next task back.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Nodes < 1 || cfg.Slots < 1 || cfg.Waiting < 2 || cfg.Task <= 0 || cfg.Duration <= 0 {
				return &exitcode.UsageError{Problem: "want one node and slot or more, two tasks or more for each slot, and times above 0"}
			}
			r, err := bench.Utilization(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := t.printFields(r); err != nil {
				return err
			}
			if r.Utilization < least {
				return fmt.Errorf("utilization %.2f is below the %.2f asked for", r.Utilization, least)
			}
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.Nodes, "nodes", 3, "nodes")
	f.IntVar(&cfg.Slots, "slots", 4, "attempts at once on each node")
	f.IntVar(&cfg.Waiting, "waiting", 20, "tasks under way for each slot")
	f.DurationVar(&cfg.Task, "task-time", 50*time.Millisecond, "how long a task runs")
	f.BoolVar(&cfg.Affinity, "one-affinity", false, "all tasks are of one affinity, and so in one shard")
	f.DurationVar(&cfg.Duration, "duration", 10*time.Second, "time of the window that is measured")
	f.Float64Var(&least, "min", 0, "fail when the share is smaller; 0 = never")
	return c
}
