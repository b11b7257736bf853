package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/events"
)

func (t *Terminal) manyCommand() *cobra.Command {
	var cfg bench.ManyConfig
	var minRatio float64
	c := &cobra.Command{
		Use:   "many",
		Short: "Compare submits of many tasks together with single ones",
		Long: `Many runs two nodes on temporary data, as bench does. Windows of the closed loop of single submits alternate with windows in
which few callers submit as many tasks together, wait for the last of them, and begin again.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Callers < 1 || cfg.InFlight < cfg.Callers || cfg.InFlight > events.MaxRequestTasks*cfg.Callers {
				return &exitcode.UsageError{Problem: fmt.Sprintf("want one caller or more, and for each 1 to %d tasks in flight", events.MaxRequestTasks)}
			}
			r, err := bench.Many(cmd.Context(), cfg)
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
	f.IntVar(&cfg.InFlight, "in-flight", 1000, "tasks under way at any time")
	f.IntVar(&cfg.Callers, "callers", 1, "callers, each of whom submits a share of them together")
	f.DurationVar(&cfg.Duration, "duration", 20*time.Second, "time of all windows together; a window takes at least 2s")
	f.Float64Var(&minRatio, "min-ratio", 0,
		"fail when fewer tasks are made together for each of the single ones; 0 = never")
	return c
}
