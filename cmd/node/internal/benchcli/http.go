package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench/overhttp"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

const askerCommand = "asker"

func (t *Terminal) httpCommand() *cobra.Command {
	var cfg overhttp.Config
	var bounds overhttp.Bounds
	c := &cobra.Command{
		Use:   "http",
		Short: "Measure what the HTTP API costs, against the same calls in the process",
		Long: `Http runs two nodes on temporary data, as bench does; one serves the HTTP API. A process of its own submits noop tasks over 64
connections and waits for each, in windows that alternate with windows of 64 callers in the process of the nodes. Processor
time is that of the nodes, the servers and the API, without who asks. Then batches of 1,000 are compared in the same way, and the p99 of
requests over 8 connections with that beside idle connections, which are a further process's.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.Idle < 0 {
				return &exitcode.UsageError{Problem: "--idle: want 0 or more"}
			}
			if cfg.Asker, err = selfBench(askerCommand); err != nil {
				return err
			}
			r, err := overhttp.Run(cmd.Context(), cfg)
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
	f.DurationVar(&cfg.Duration, "duration", 24*time.Second, "time of all windows together; a window takes at least 2s")
	f.IntVar(&cfg.Idle, "idle", 0, "connections that do nothing beside the last window; their process and this one open a file for each")
	f.Float64Var(&bounds.Ratio, "min-ratio", 0, "fail when there are fewer tasks, or tasks of batches, per task in the process; 0 = never")
	f.Float64Var(&bounds.ExtraUs, "max-extra", 0, "fail when a task costs more `microseconds` of processor above one in the process; 0 = never")
	f.Float64Var(&bounds.Idle, "max-idle", 0, "fail when the p99 beside idle connections is so many times that without; 0 = never")
	return c
}

func (t *Terminal) benchAsker() *cobra.Command {
	return &cobra.Command{
		Use:    askerCommand,
		Short:  "Make the HTTP requests that standard input asks for until it ends",
		Args:   flags.NoArguments,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := overhttp.Ask(cmd.Context(), t.In, t.Out); err != nil {
				return fmt.Errorf("ask: %w", err)
			}
			return nil
		},
	}
}
