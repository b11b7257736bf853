package benchcli

import (
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

func (t *Terminal) listsCommand() *cobra.Command {
	var cfg bench.ListsConfig
	var bounds bench.ListsBounds
	c := &cobra.Command{
		Use:   "lists",
		Short: "Measure pages of lists among many tasks, beside a load",
		Long: `Lists fills a node on temporary data with tasks that wait and tasks that have ended, which a retention of 24 hours and 100,000
tasks of a behavior in each shard keeps. It measures pages of 100 tasks for filters that match one task in 200 or more,
one filter after the other at the rate of --pages, beside noop tasks at 82 % of the speed that they have alone, and tells what share of
it they reached, and of the filter whose pages take the longest; --output json tells of each. Then it measures the turns of the owner of one shard of up to 100,000 waiting tasks, beside lists of what
no task matches.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Finished < 2 || cfg.Waiting < 1 || cfg.InFlight < 1 || cfg.Pages < 1 || cfg.Duration <= 0 {
				return &exitcode.UsageError{Problem: "want two finished tasks or more, one that waits, one in flight, a page each second, and parts of some length"}
			}
			r, err := bench.Lists(cmd.Context(), cfg)
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
	f.IntVar(&cfg.Finished, "finished", 1_000_000, "tasks that have ended")
	f.IntVar(&cfg.Waiting, "waiting", 100_000, "tasks that wait for their time")
	f.IntVar(&cfg.InFlight, "in-flight", 64, "tasks of the load under way at any time, at most")
	f.IntVar(&cfg.Pages, "pages", 10, "pages asked for each second beside the load")
	f.DurationVar(&cfg.Duration, "duration", 20*time.Second, "time of each timed part")
	f.DurationVar(&bounds.Page, "max-page", 0, "fail when the p99 of a filter's pages is longer; 0 = never")
	f.DurationVar(&bounds.Turn, "max-turn", 0, "fail when the p99 of an owner's turns beside lists is longer; 0 = never")
	f.Float64Var(&bounds.Load, "min-load", 0, "fail when the load has less of its speed beside lists; 0 = never")
	return c
}
