// Package benchcli is the command bench: flags of the measurements in package bench, and how their results are printed.
package benchcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench"
	"taskledger/cmd/node/internal/bench/overui"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/progress"
)

// The hidden subcommands of bench that run etcd and NATS, and a generator of load, in a process of their own.
const (
	serversCommand   = "servers"
	generatorCommand = "generator"
)

// Terminal holds the streams that the command reads and writes.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	JSON     func() bool // that JSON is wanted of every command
}

// Command returns the command, with its subcommands.
func (t *Terminal) Command() *cobra.Command {
	var cfg bench.Config
	var client string
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.InFlight < 1 || cfg.InFlight > maxInFlight {
				return &exitcode.UsageError{Problem: fmt.Sprintf("--in-flight: want 1 to %d", maxInFlight)}
			}
			switch client {
			case "inproc":
			case "grpc":
				self, err := selfBench(serversCommand)
				if err != nil {
					return err
				}
				cfg.Servers = self
			default:
				return &exitcode.UsageError{Problem: "--client: want inproc or grpc"}
			}
			r, err := bench.Run(cmd.Context(), cfg)
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
	f.IntVar(&cfg.InFlight, "in-flight", 64, "tasks under way at any time")
	f.DurationVar(&cfg.Duration, "duration", 20*time.Second, "time of all windows together; a window takes at least 2s")
	f.BoolVar(&cfg.Metered, "metered", false, "let the nodes measure what they do, as with serve --metrics")
	f.StringVar(&client, "client", "inproc", "inproc: etcd in this process; grpc: etcd behind gRPC")
	clients := cobra.FixedCompletions([]string{"inproc", "grpc"}, cobra.ShellCompDirectiveNoFileComp)
	if err := c.RegisterFlagCompletionFunc("client", clients); err != nil {
		panic(err) // the flag is there
	}
	f.Float64Var(&minRatio, "min-ratio", 0, "fail when there are fewer tasks per baseline put; 0 = never")
	c.AddCommand(
		t.scaleCommand(),
		t.listsCommand(),
		t.soakCommand(),
		t.upkeepCommand(),
		t.overloadCommand(),
		t.utilizationCommand(),
		t.manyCommand(),
		t.shardsCommand(),
		t.figuresCommand(),
		t.httpCommand(),
		t.storeCommand(),
		t.storeHTTPCommand(),
		dashboardCommand(t.printFields, selfBench),
		logsCommand(t.printFields),
		schedulesCommand(t.printFields),
		worksCommand(t.printFields),
		appendsCommand(t.printFields),
		t.benchServers(),
		t.benchGenerator(),
		t.benchAsker(),
		t.benchStoreAsker(),
		benchViewer(func(ctx context.Context) error { return overui.Look(ctx, t.In, t.Out) }),
	)
	return c
}

func (t *Terminal) scaleCommand() *cobra.Command {
	var cfg bench.ScaleConfig
	var bounds bench.ScaleBounds
	c := &cobra.Command{
		Use:   "scale",
		Short: "Measure the large cases",
		Long: `Scale measures how late delayed tasks start while many others wait, otherwise idle and beside 64 tasks in flight; the live
heap that a delayed task with 64-byte parameters costs, with etcd in another process; the take-over of all of them from
the journal, from the end of the dead node's session until its heir has accepted a command on every shard, also with all
of them, and a hundredth, in one shard; what a shard with 100,000 waiting tasks feels of its snapshots; and how long after
its handler a future resolves when NATS has stopped.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.Waiting < 0 || cfg.Delayed < 0 || cfg.DuePerS < 1 {
				return &exitcode.UsageError{Problem: "want counts of 0 or more, and at least one due task a second"}
			}
			if cfg.Servers, err = selfBench(serversCommand); err != nil {
				return err
			}
			r, err := bench.Scale(cmd.Context(), cfg)
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
	f.IntVar(&cfg.Waiting, "waiting", 100_000, "tasks that wait while others become due")
	f.IntVar(&cfg.DuePerS, "due", 1000, "tasks that become due each second")
	f.IntVar(&cfg.Delayed, "delayed", 1_000_000, "tasks that are held and taken over")
	f.DurationVar(&cfg.Duration, "duration", 10*time.Second, "time of each timed part")
	f.DurationVar(&bounds.Turn, "max-turn", 0, "fail when the p99 of an owner's turns beside snapshots is longer; 0 = never")
	f.DurationVar(&bounds.TakeOver, "max-take-over", 0, "fail when a take-over lasts longer; 0 = never")
	return c
}

func (t *Terminal) soakCommand() *cobra.Command {
	var cfg bench.SoakConfig
	var bounds bench.SoakBounds
	c := &cobra.Command{
		Use:   "soak",
		Short: "Run one node under constant load and watch what grows",
		Long: `Soak runs noop tasks through one node on temporary data, with snapshots, archive, trims and compaction on, until so many
are done or the time is over. It samples etcd's bytes in use and its file, the live heap after a collection, resident
memory and open files, and fits a line through what follows the first fifth: how much each grows for every million tasks.
At full speed the first two million fill etcd's file, and with it resident memory, up to where they stay. What etcd holds
follows the speed, so that a speed that rises during the run looks like growth; a longer run tells them apart.

With --archive-away the archive cannot be reached and no journal is trimmed: etcd, in a process of its own, grows until it
is almost full and tasks are refused, which are then submitted again; the node's memory must not grow with it.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.InFlight < 1 || cfg.Tasks < 1 || cfg.Sample <= 0 || cfg.Rate < 0 {
				return &exitcode.UsageError{Problem: "want one task in flight or more, one task or more, a time between samples, and no negative rate"}
			}
			if cfg.Servers, err = selfBench(serversCommand); err != nil {
				return err
			}
			bar := progress.NewBar(t.Err, "tasks")
			r, err := bench.Soak(cmd.Context(), cfg, func(tasks int) { bar.Show(int64(tasks), int64(max(tasks, cfg.Tasks)), "") })
			bar.Done()
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
	f.IntVar(&cfg.Tasks, "tasks", 30_000_000, "tasks at most")
	f.DurationVar(&cfg.Duration, "duration", time.Hour, "time at most")
	f.IntVar(&cfg.InFlight, "in-flight", 1000, "tasks under way at any time, at most")
	f.IntVar(&cfg.Rate, "rate", 0, "tasks begun each second; 0 = at full speed")
	f.BoolVar(&cfg.ArchiveAway, "archive-away", false, "let the archive be away all the time")
	f.DurationVar(&cfg.Sample, "sample", 5*time.Second, "time between two samples")
	f.Float64Var(&bounds.Kept, "max-kept", 0, "fail when etcd holds a larger share of all entries at the end; 0 = never")
	f.Float64Var(&bounds.SlopePct, "max-slope", 0, "fail when something grows by more percent of its mean for each million tasks; 0 = never")
	f.Float64Var(&bounds.HeapMiB, "max-heap", 0, "fail when the live heap is larger on average, in `MiB`; 0 = never")
	f.Float64Var(&bounds.OpenFiles, "max-open-files", 0, "fail when more files are open on average; 0 = never")
	return c
}

func (t *Terminal) upkeepCommand() *cobra.Command {
	var cfg bench.UpkeepConfig
	var minRatio float64
	c := &cobra.Command{
		Use:   "upkeep",
		Short: "Measure what snapshots, archive and trims cost",
		Long: `Upkeep runs noop tasks in two clusters on the same temporary servers, in windows that alternate: one with snapshots,
archive and trims, one with none of them. A window of the first lasts until they have caught up.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.InFlight < 1 || cfg.Window <= 0 {
				return &exitcode.UsageError{Problem: "want one task in flight or more, and windows of some length"}
			}
			r, err := bench.Upkeep(cmd.Context(), cfg)
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
	f.DurationVar(&cfg.Duration, "duration", time.Minute, "time of all windows together")
	f.DurationVar(&cfg.Window, "window", 10*time.Second, "time of one window")
	f.Float64Var(&minRatio, "min-ratio", 0, "fail when the first makes fewer tasks per task of the second; 0 = never")
	return c
}

func (t *Terminal) overloadCommand() *cobra.Command {
	var cfg bench.OverloadConfig
	var minGoodput float64
	c := &cobra.Command{
		Use:   "overload",
		Short: "Measure what a node does at twice the load it can take",
		Long: `Overload finds the peak of one node on temporary data, by a closed loop of noop tasks, and then submits twice as many a
second, whatever becomes of them. The generator of both loads is a process of its own. It has half of the processors to
itself, on Linux, so that it takes none of the node's; its processor time is told, as is what it could not send on
schedule. Goodput is the tasks completed while the open loop lasts, as a share of the peak.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.InFlight < 1 || cfg.Peak <= 0 || cfg.Duration <= 0 {
				return &exitcode.UsageError{Problem: "want one task in flight or more, and loops of some length"}
			}
			if cfg.Generator, err = selfBench(generatorCommand); err != nil {
				return err
			}
			r, err := bench.Overload(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := t.printFields(r); err != nil {
				return err
			}
			switch {
			case r.Goodput < minGoodput:
				return fmt.Errorf("goodput is %.2f of the peak, less than the %.2f asked for", r.Goodput, minGoodput)
			case minGoodput > 0 && r.Unsent > r.Sent/20:
				return fmt.Errorf("the generator could not send %d of %d submits on schedule: that was not twice the peak", r.Unsent, r.Unsent+r.Sent)
			case minGoodput > 0 && r.SessionsLost+r.TimedOut+r.Failed > 0:
				return fmt.Errorf("%d sessions lost, %d submits without an answer, %d failed", r.SessionsLost, r.TimedOut, r.Failed)
			}
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.InFlight, "in-flight", 1000, "tasks under way in the closed loop")
	f.DurationVar(&cfg.Peak, "peak", 10*time.Second, "length of the closed loop")
	f.DurationVar(&cfg.Duration, "duration", 20*time.Second, "length of the open loop")
	f.Float64Var(&minGoodput, "min-goodput", 0, "fail when less than this share of the peak is completed, or anything is lost or unanswered; 0 = never")
	return c
}

func (t *Terminal) benchServers() *cobra.Command {
	return &cobra.Command{
		Use:    serversCommand,
		Short:  "Run etcd and NATS on temporary data until standard input ends",
		Args:   flags.NoArguments,
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return bench.Serve(cmd.Context(), t.In, t.Out) },
	}
}

func (t *Terminal) benchGenerator() *cobra.Command {
	return &cobra.Command{
		Use:    generatorCommand,
		Short:  "Make the loads that standard input asks for until it ends",
		Args:   flags.NoArguments,
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return bench.Generate(cmd.Context(), t.In, t.Out) },
	}
}

// selfBench is the command line of this program that runs a subcommand of bench.
func selfBench(command string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return []string{self, "bench", command}, nil
}

// printFields prints the fields of a struct under their JSON names; lists are left to the JSON form.
func (t *Terminal) printFields(v any) error {
	if t.JSON() {
		return json.NewEncoder(t.Out).Encode(v)
	}
	p := output.New(t.Out, false)
	all := reflect.ValueOf(v)
	for _, field := range reflect.VisibleFields(all.Type()) {
		value := all.FieldByIndex(field.Index)
		if field.Anonymous || value.Kind() == reflect.Slice {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		text := fmt.Sprint(value)
		if value.CanFloat() {
			text = fmt.Sprintf("%.2f", value.Float())
		}
		if err := p.Row(nil, name, text); err != nil {
			return err
		}
	}
	return errors.Join(p.Flush())
}
