package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench/overschedules"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

// The limits of what may be measured. Each shard has room for 5,000 schedules.
const (
	maxSchedules = 50_000
	maxTicks     = 1000
	maxBeside    = 16_384 // other tasks under way
)

// schedulesCommand returns the command; print prints a result.
func schedulesCommand(print func(result any) error) *cobra.Command {
	var cfg overschedules.Config
	var bounds overschedules.Bounds
	c := &cobra.Command{
		Use:   "schedules",
		Short: "Measure many schedules that fire at one instant, beside other tasks",
		Long: `Schedules runs two nodes on temporary data, as bench does, and many schedules that fire together every
five seconds. It measures how long after the instant each has its run, and how many noop tasks end in the two seconds
from it on, for each in the two seconds before. It fails when a tick has no run or two, or one before its time. Before
that it sets the schedules to a time that is half a day away, and fails when they have an entry of a journal written
while nothing happens.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case cfg.Schedules < 1 || cfg.Schedules > maxSchedules:
				return &exitcode.UsageError{Problem: fmt.Sprintf("--schedules: want 1 to %d", maxSchedules)}
			case cfg.Ticks < 1 || cfg.Ticks > maxTicks:
				return &exitcode.UsageError{Problem: fmt.Sprintf("--ticks: want 1 to %d", maxTicks)}
			case cfg.InFlight < 1 || cfg.InFlight > maxBeside:
				return &exitcode.UsageError{Problem: fmt.Sprintf("--in-flight: want 1 to %d", maxBeside)}
			case cfg.Idle <= 0:
				return &exitcode.UsageError{Problem: "--idle: want some time"}
			}
			r, err := overschedules.Run(cmd.Context(), cfg)
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
	f.IntVar(&cfg.Schedules, "schedules", 1000, "schedules that fire together")
	f.IntVar(&cfg.Ticks, "ticks", 5, "how often they fire, every 5s")
	f.IntVar(&cfg.InFlight, "in-flight", 64, "noop tasks under way at any time")
	f.DurationVar(&cfg.Idle, "idle-time", 5*time.Second, "watch schedules that do not fire for so long")
	f.DurationVar(&bounds.Late, "max-late", 0, "fail when the last run of a tick is created later; 0 = never")
	f.Float64Var(&bounds.Ratio, "min-ratio", 0, "fail when fewer noop tasks end for each before a tick; 0 = never")
	return c
}
