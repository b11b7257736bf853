package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

func logsCommand(print func(result any) error) *cobra.Command {
	var cfg bench.LogsConfig
	var minRatio float64
	c := &cobra.Command{
		Use:   "logs",
		Short: "Compare tasks whose functions log with tasks that log nothing",
		Long: `Logs runs two nodes on temporary data, as bench does, and keeps the logs of tasks. Windows of the closed loop in which each
function logs nothing alternate with windows in which it logs. It tells the lines that were kept and those that were dropped.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.InFlight < 1 || cfg.Lines < 1 {
				return &exitcode.UsageError{Problem: "want one task in flight or more, and one line or more"}
			}
			r, err := bench.Logs(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := print(r); err != nil {
				return err
			}
			if r.UncountedLines != 0 {
				return fmt.Errorf("%d lines count neither as kept nor as dropped", r.UncountedLines)
			}
			if r.Ratio < minRatio {
				return fmt.Errorf("ratio %.2f is below the %.2f asked for", r.Ratio, minRatio)
			}
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.InFlight, "in-flight", 1000, "tasks under way at any time")
	f.IntVar(&cfg.Lines, "lines", 1, "lines that each function logs")
	f.DurationVar(&cfg.Duration, "duration", 20*time.Second, "time of all windows together; a window takes at least 2s")
	f.Float64Var(&minRatio, "min-ratio", 0, "fail when fewer tasks that log are made for each that does not; 0 = never")
	return c
}
