package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench"
	"taskledger/cmd/node/internal/progress"
)

// serversCommand is the hidden subcommand of bench that runs etcd and NATS in a process of their own.
const serversCommand = "servers"

func (a *app) benchCommand() *cobra.Command {
	var cfg bench.Config
	var client string
	var asJSON bool
	var minRatio float64
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure tasks per second against plain etcd puts, in one run",
		Long: `Bench runs two nodes on temporary data. A closed loop submits noop tasks on node A, which runs nothing; node B runs them;
A's futures resolve. Windows of that alternate with windows of the baseline: single puts of 256 bytes by 64 writers,
through the same kind of client. Compare ratios: the speed of a shared machine changes from minute to minute.

NATS runs in this process. So does etcd with --client inproc; with grpc it runs in a process of its own, and processor
time is that of both.`,
		Args: cobra.NoArgs,
		Example: a.examples(
			example{"a thousand callers, for half a minute", []string{"bench", "--in-flight", "1000", "--duration", "30s"}},
			example{"latency of one caller, etcd over gRPC", []string{"bench", "--in-flight", "1", "--client", "grpc"}}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.InFlight < 1 || cfg.InFlight > 16_384 {
				return &usageError{"--in-flight: want 1 to 16384"}
			}
			switch client {
			case "inproc":
			case "grpc":
				self, err := selfServers()
				if err != nil {
					return err
				}
				cfg.Servers = self
			default:
				return &usageError{"--client: want inproc or grpc"}
			}
			r, err := bench.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := a.printFields(r, asJSON); err != nil {
				return err
			}
			if r.Ratio < minRatio {
				return fmt.Errorf("ratio %.2f is below the %.2f asked for", r.Ratio, minRatio)
			}
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.InFlight, "in-flight", 64, "tasks under way at any time")
	f.DurationVar(&cfg.Duration, "duration", 20*time.Second, "of all windows; a window takes at least 2s")
	f.StringVar(&client, "client", "inproc", "etcd in this process, inproc, or behind gRPC, grpc")
	f.Float64Var(&minRatio, "min-ratio", 0, "fail when there are fewer tasks per baseline put, for checks")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	c.AddCommand(a.scaleCommand(), a.soakCommand(), a.upkeepCommand(), a.benchServers())
	return c
}

func (a *app) scaleCommand() *cobra.Command {
	var cfg bench.ScaleConfig
	var asJSON bool
	c := &cobra.Command{
		Use:   "scale",
		Short: "Measure the large cases",
		Long: `Scale measures how late delayed tasks start while many others wait, otherwise idle and beside 64 tasks in flight; the live
heap that a delayed task with 64-byte parameters costs, with etcd in another process; the take-over of all of them from
the journal, from the end of the dead node's session until its heir has accepted a command on every shard, also with all
of them, and a hundredth, in one shard; what a shard with 100,000 waiting tasks feels of its snapshots; and how long after
its handler a future resolves when NATS has stopped.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.Waiting < 0 || cfg.Delayed < 0 || cfg.DuePerS < 1 {
				return &usageError{"want counts of 0 or more, and at least one due task a second"}
			}
			if cfg.Servers, err = selfServers(); err != nil {
				return err
			}
			r, err := bench.Scale(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return a.printFields(r, asJSON)
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.Waiting, "waiting", 100_000, "tasks that wait while others become due")
	f.IntVar(&cfg.DuePerS, "due", 1000, "tasks that become due each second")
	f.IntVar(&cfg.Delayed, "delayed", 1_000_000, "tasks that are held and taken over")
	f.DurationVar(&cfg.Duration, "duration", 10*time.Second, "of each timed part")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) soakCommand() *cobra.Command {
	var cfg bench.SoakConfig
	var maxSlope, maxKept float64
	var asJSON bool
	c := &cobra.Command{
		Use:   "soak",
		Short: "Run one node at full speed and watch what grows",
		Long: `Soak runs noop tasks through one node on temporary data, with snapshots, archive, trims and compaction on, until so many
are done or the time is over. It samples etcd's bytes in use and its file, the live heap after a collection, resident
memory and open files, and fits a line through what follows the first fifth: how much each grows for every million tasks.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.InFlight < 1 || cfg.Tasks < 1 || cfg.Sample <= 0 {
				return &usageError{"want one task in flight or more, one task or more, and a time between samples"}
			}
			bar := progress.NewBar(a.Err, "tasks")
			r, err := bench.Soak(cmd.Context(), cfg, func(tasks int) { bar.Show(int64(tasks), int64(max(tasks, cfg.Tasks)), "") })
			bar.Done()
			if err != nil {
				return err
			}
			if err := a.printFields(r, asJSON); err != nil {
				return err
			}
			if maxSlope > 0 && r.Worst() > maxSlope {
				return fmt.Errorf("something grows by %.2f %% for each million tasks, more than the %.2f allowed", r.Worst(), maxSlope)
			}
			if maxKept > 0 && r.Kept > maxKept {
				return fmt.Errorf("etcd holds %.2f of all entries at the end, more than the %.2f allowed", r.Kept, maxKept)
			}
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.Tasks, "tasks", 10_000_000, "tasks at most")
	f.DurationVar(&cfg.Duration, "duration", time.Hour, "time at most")
	f.IntVar(&cfg.InFlight, "in-flight", 1000, "tasks under way at any time")
	f.DurationVar(&cfg.Sample, "sample", 5*time.Second, "time between two samples")
	f.Float64Var(&maxKept, "max-kept", 0, "fail when etcd holds a larger share of all entries at the end; 0 = never")
	f.Float64Var(&maxSlope, "max-slope", 0, "fail when something grows by more percent of its mean for each million tasks; 0 = never")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) upkeepCommand() *cobra.Command {
	var cfg bench.UpkeepConfig
	var minRatio float64
	var asJSON bool
	c := &cobra.Command{
		Use:   "upkeep",
		Short: "Measure what snapshots, archive and trims cost",
		Long: `Upkeep runs noop tasks in two clusters on the same temporary servers, in windows that alternate: one with snapshots,
archive and trims, one with none of them. A window of the first lasts until they have caught up.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.InFlight < 1 || cfg.Window <= 0 {
				return &usageError{"want one task in flight or more, and windows of some length"}
			}
			r, err := bench.Upkeep(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := a.printFields(r, asJSON); err != nil {
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
	f.DurationVar(&cfg.Duration, "duration", time.Minute, "of all windows")
	f.DurationVar(&cfg.Window, "window", 10*time.Second, "of one")
	f.Float64Var(&minRatio, "min-ratio", 0, "fail when the first makes fewer tasks per task of the second, for checks")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) benchServers() *cobra.Command {
	return &cobra.Command{
		Use:    serversCommand,
		Short:  "Run etcd and NATS on temporary data until standard input ends",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return bench.Serve(cmd.Context(), a.In, a.Out) },
	}
}

// selfServers is the command line of this program that runs the servers.
func selfServers() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return []string{self, "bench", serversCommand}, nil
}

// printFields prints the fields of a struct under their JSON names.
func (a *app) printFields(v any, asJSON bool) error {
	if asJSON || a.output == "json" {
		return json.NewEncoder(a.Out).Encode(v)
	}
	p := a.print()
	fields := reflect.ValueOf(v)
	for field, value := range fields.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		text := fmt.Sprint(value)
		if value.CanFloat() {
			text = fmt.Sprintf("%.2f", value.Float())
		}
		if err := p.row(nil, name, text); err != nil {
			return err
		}
	}
	return errors.Join(p.flush())
}
