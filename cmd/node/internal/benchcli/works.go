package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench/overworks"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

// worksCommand returns the command; print prints a result.
func worksCommand(print func(result any) error) *cobra.Command {
	var cfg overworks.Config
	var bounds overworks.Bounds
	c := &cobra.Command{
		Use:   "works",
		Short: "Measure how fast the buckets of a work end, beside tasks",
		Long: `Works runs two nodes on temporary data, as bench does. Windows in which noop tasks of one shard end
alternate with windows in which the workers of a work, as many as tasks are under way, end empty buckets. Then 30
workers work on 256 buckets of 100 items that take 5 ms each: it tells which share of their time they spend on items.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case cfg.Workers < 1 || cfg.Workers > overworks.MaxWorkers:
				return &exitcode.UsageError{Problem: fmt.Sprintf("--workers: want 1 to %d", overworks.MaxWorkers)}
			case cfg.Duration <= 0:
				return &exitcode.UsageError{Problem: "--duration: want some time"}
			}
			r, err := overworks.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := print(r); err != nil {
				return err
			}
			return r.Within(bounds)
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.Workers, "workers", 32, "workers of the work, and tasks under way beside it")
	f.DurationVar(&cfg.Duration, "duration", 12*time.Second, "time of all windows together")
	f.Float64Var(&bounds.Ratio, "min-ratio", 0, "fail when fewer buckets end for each task; 0 = never")
	f.Float64Var(&bounds.OnItems, "min-on-items", 0,
		"fail when workers spend a smaller share of their time on items; 0 = never")
	return c
}
