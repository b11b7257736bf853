package benchcli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench/overstore"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

const storeAskerCommand = "store-asker"

func (t *Terminal) storeHTTPCommand() *cobra.Command {
	var cfg overstore.Config
	var minRatio, maxCPU float64
	c := &cobra.Command{
		Use:   "store-http",
		Short: "Measure a task store over HTTP against the same calls in the process",
		Long: `Store-http runs two nodes on temporary data; one serves the HTTP API. A process of its own claims items of a store and replaces each by
another, over 32 connections, in windows that alternate with windows of 32 workers in the process of the nodes. The node with the API owns the
store's shard. Processor time is that of the nodes, the servers and the API, without who asks.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Depth < 32 {
				return &exitcode.UsageError{Problem: "--depth: want 32 or more"}
			}
			asker, err := selfBench(storeAskerCommand)
			if err != nil {
				return err
			}
			r, err := overstore.RunHTTP(cmd.Context(), cfg, asker)
			if err != nil {
				return err
			}
			if err := t.printFields(r); err != nil {
				return err
			}
			switch {
			case r.Ratio < minRatio:
				return fmt.Errorf("ratio %.2f is below the %.2f asked for", r.Ratio, minRatio)
			case maxCPU > 0 && r.CPUUs > maxCPU:
				return fmt.Errorf("a cycle takes %.1f us of processor, above the %.1f allowed", r.CPUUs, maxCPU)
			}
			return nil
		},
	}
	f := c.Flags()
	f.DurationVar(&cfg.Duration, "duration", 20*time.Second, "time of all windows together; a window takes at least 2s")
	f.IntVar(&cfg.Depth, "depth", 10_000, "items that are there")
	f.BoolVar(&cfg.Away, "away", false, "take a shard that the other node owns: calls go over NATS")
	f.BoolVar(&cfg.Unix, "unix", false, "ask over a Unix socket, as may who runs beside the node, instead of TCP")
	f.Float64Var(&minRatio, "min-ratio", 0, "fail when there are fewer cycles per cycle in the process; 0 = never")
	f.Float64Var(&maxCPU, "max-cpu", 0, "fail when a cycle takes more `microseconds` of processor; 0 = never")
	return c
}

func (t *Terminal) benchStoreAsker() *cobra.Command {
	return &cobra.Command{
		Use:    storeAskerCommand,
		Short:  "Make the cycles that standard input asks for until it ends",
		Args:   flags.NoArguments,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := overstore.Ask(cmd.Context(), t.In, t.Out); err != nil {
				return fmt.Errorf("ask: %w", err)
			}
			return nil
		},
	}
}
