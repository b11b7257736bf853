package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench/overappends"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

// appendsCommand returns the command; print prints a result.
func appendsCommand(print func(result any) error) *cobra.Command {
	var cfg overappends.Config
	var bounds overappends.Bounds
	c := &cobra.Command{
		Use:   "appends",
		Short: "Compare entries of journals in files with those in etcd",
		Long: `Appends writes entries of 256 bytes to the journals of 64 shards, in three stores on temporary data of one disk: in files,
strict and opportunistic, and in etcd in this process. Windows of the stores alternate, with many entries under way and
with one at a time. Ratios compare windows of one round: the speed of a disk changes from minute to minute.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case cfg.InFlight < 1 || cfg.InFlight > overappends.Most:
				return &exitcode.UsageError{Problem: fmt.Sprintf("--in-flight: want 1 to %d", overappends.Most)}
			case cfg.Duration <= 0:
				return &exitcode.UsageError{Problem: "--duration: want some time"}
			}
			r, err := overappends.Run(cmd.Context(), cfg)
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
	f.IntVar(&cfg.InFlight, "in-flight", overappends.Most, "entries under way at any time, each of its own shard")
	f.DurationVar(&cfg.Duration, "duration", 24*time.Second, "time of all windows together; a window takes 500ms to 2s")
	f.Float64Var(&bounds.Strict, "min-strict", 0, "fail when strict makes fewer entries for each of etcd's; 0 = never")
	f.Float64Var(&bounds.StrictAlone, "min-strict-alone", 0,
		"fail when the p50 of one entry at a time in etcd is a smaller multiple of that of strict; 0 = never")
	f.Float64Var(&bounds.Opportunistic, "min-opportunistic", 0, "as --min-strict, for opportunistic")
	f.Float64Var(&bounds.OpportunisticAlone, "min-opportunistic-alone", 0, "as --min-strict-alone, for opportunistic")
	return c
}
