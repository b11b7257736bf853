package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/internal/measure"
)

// maxBenchInFlight bounds the tasks that may be under way.
const maxBenchInFlight = 16_384

// benchCommand returns the command bench, which measures the throughput and the latency of tasks on this machine.
func (a *app) benchCommand() *cobra.Command {
	var inFlight int
	var duration time.Duration
	var minRatio float64
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure tasks per second and their latency against plain etcd puts",
		Long: `Bench runs two nodes on temporary data, with etcd and NATS in this process. A closed loop submits noop
tasks on node A, which runs nothing; node B runs them; A's futures resolve. Windows of that alternate with windows of
the baseline: single puts of 256 bytes by 64 writers. Compare ratios: the speed of a shared machine changes from minute
to minute.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if inFlight < 1 || inFlight > maxBenchInFlight {
				return &exitcode.UsageError{Problem: fmt.Sprintf("--in-flight: want 1 to %d", maxBenchInFlight)}
			}
			r, err := runBench(cmd.Context(), inFlight, duration)
			if err != nil {
				return err
			}
			if err := printBench(output.New(a.Out, a.output == "json"), &r); err != nil {
				return err
			}
			if r.Ratio < minRatio {
				return fmt.Errorf("ratio %.2f is below the %.2f asked for", r.Ratio, minRatio)
			}
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&inFlight, "in-flight", 64, "tasks under way at any time")
	f.DurationVar(&duration, "duration", 20*time.Second, "time of all windows together; a window takes at least 2s")
	f.Float64Var(&minRatio, "min-ratio", 0, "fail when there are fewer tasks per baseline put; 0 = never")
	return c
}

// runBench measures tasks on servers that end with the measurement.
func runBench(ctx context.Context, inFlight int, duration time.Duration) (r measure.Tasks, err error) {
	s, err := measure.StartServers(ctx, measure.Config{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return measure.MeasureTasks(ctx, s, inFlight, duration)
}

// printBench prints what was measured.
func printBench(p *output.Printer, r *measure.Tasks) error {
	if p.IsJSON() {
		return p.Row(r)
	}
	for _, row := range []struct{ what, is string }{
		{"tasks", fmt.Sprintf("%.0f/s, %d in flight", r.TasksPerS, r.InFlight)},
		{"baseline puts", fmt.Sprintf("%.0f/s", r.BaselinePutsPerS)},
		{"ratio", fmt.Sprintf("%.2f", r.Ratio)},
		{"latency", fmt.Sprintf("p50 %.2f ms, p99 %.2f ms", r.P50Ms, r.P99Ms)},
		{"latency of a put", fmt.Sprintf("p50 %.2f ms, of one writer alone", r.BaselineP50Ms)},
		{"processor time", fmt.Sprintf("%.1f us a task, with etcd and NATS", r.CPUUsPerTask)},
		{"writes to etcd", fmt.Sprintf("%.3f a task", r.EtcdRequestsPerTask)},
		{"measured", fmt.Sprintf("%d tasks in %.1f s", r.Tasks, r.DurationS)},
	} {
		if err := p.Row(nil, row.what, row.is); err != nil {
			return err
		}
	}
	return p.Flush()
}
