package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

func (t *Terminal) figuresCommand() *cobra.Command {
	var cfg bench.FiguresConfig
	var most float64
	c := &cobra.Command{
		Use:   "figures",
		Short: "Measure what it costs that nodes have a meter",
		Long: `Figures runs two clusters of two nodes on temporary data, as bench does, and the nodes of one have a meter, as with
serve --metrics. Windows of the closed loop follow each other in rounds of four: without a meter, with, with, without. It
tells the CPU time per task of both, and how much more it is with a meter. What owners count for stats, both count.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.InFlight < 1 || cfg.InFlight > maxInFlight {
				return &exitcode.UsageError{Problem: fmt.Sprintf("--in-flight: want 1 to %d", maxInFlight)}
			}
			r, err := bench.Figures(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := t.printFields(r); err != nil {
				return err
			}
			if most > 0 && r.CostPercent > most {
				return fmt.Errorf("a meter costs %.1f %% of CPU per task, above the %.1f allowed", r.CostPercent, most)
			}
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.InFlight, "in-flight", 1000, "tasks under way at any time")
	f.DurationVar(&cfg.Duration, "duration", 48*time.Second, "time of all windows together; a window takes at least 2s")
	f.Float64Var(&most, "max-cost", 0, "fail when a meter costs more percent of CPU per task; 0 = never")
	return c
}
