// Package workcli is the command work: it tells how far partitioned works have come, shows what failed, and resets and
// reruns them.
package workcli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/work/progress"
)

// Terminal connects the commands to the command line.
type Terminal struct {
	Err   io.Writer
	Print func(columns ...string) *output.Printer
	// Ask makes a command one that asks a cluster.
	Ask func(
		c *cobra.Command, run func(ctx context.Context, works operations.Works, args []string) error,
	) *cobra.Command
	// Complete completes ids of tasks.
	Complete cobra.CompletionFunc
}

// Command returns the command, with its subcommands.
func (t *Terminal) Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "work",
		Short: "Look at partitioned works, and reset and rerun them",
		Long: `Work tells how far the work of a task has come, and which of its items have failed. A work processes every
item of a large set, bucket by bucket, by workers on all nodes; it is submitted, suspended, resumed, cancelled and retried
as any task is.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(t.show(), t.errors(), t.reset(), t.rerun())
	return c
}

// of returns a command about the work of one task.
func (t *Terminal) of(
	use, short, long string, run func(ctx context.Context, works operations.Works, id events.TaskID) error,
) *cobra.Command {
	c := &cobra.Command{
		Use:               use + " ID",
		Short:             short,
		Long:              short + ".\n\n" + long,
		Args:              flags.Arguments,
		ValidArgsFunction: t.Complete,
	}
	return t.Ask(c, func(ctx context.Context, works operations.Works, args []string) error {
		return run(ctx, works, events.TaskID(args[0]))
	})
}

func (t *Terminal) reset() *cobra.Command {
	var (
		thresholds    bool
		token, reason string
		c             *cobra.Command
	)
	c = t.of("reset", "Forget the run of a work that does not run",
		`The next attempt plans the work anew, and begins with the first bucket; what was counted is gone. With
--thresholds only what the counters of thresholds have counted is forgotten, and the work goes on where it was: after a threshold
has ended it, reset --thresholds and then retry let it go on. With --token and --reason nothing is forgotten: a stream that is
suspended or has ended goes on from that token, "" standing for the beginning.`,
		func(ctx context.Context, works operations.Works, id events.TaskID) error {
			sets := c.Flags().Changed("token")
			switch {
			case sets && thresholds:
				return &exitcode.UsageError{Problem: "reset: want either --thresholds or --token"}
			case sets != (reason != ""):
				return &exitcode.UsageError{Problem: "reset: want --token with --reason"}
			case sets:
				return works.ResetWork(ctx, id, operations.WorkReset{
					Token:  &token,
					Reason: reason,
				})
			}
			return works.ResetWork(ctx, id, operations.WorkReset{Thresholds: thresholds})
		})
	c.Flags().BoolVar(&thresholds, "thresholds", false, "forget only what the counters of thresholds have counted")
	c.Flags().StringVar(&token, "token", "",
		"let a stream go on from this token; \"\" = from the beginning; needs --reason")
	flags.MayBeEmpty(c.Flags(), "token")
	c.Flags().StringVar(&reason, "reason", "", "why the token is set; it is recorded")
	return c
}

func (t *Terminal) rerun() *cobra.Command {
	var failed bool
	c := t.of("rerun", "Run the buckets of a work again that had failed items",
		`The work must have ended with all buckets done; else retry goes on with those that are not. Its next run begins
at once. Where more than 16,384 ranges of buckets of a run had failed items, it has all buckets from the first of
them to the last, and the command says so.`,
		func(ctx context.Context, works operations.Works, id events.TaskID) error {
			if !failed {
				const want = "rerun: want --failed; retry begins a run of all buckets"
				return &exitcode.UsageError{Problem: want}
			}
			before, err := works.Work(ctx, id)
			if err != nil {
				return err
			}
			if err := works.RerunWork(ctx, id); err != nil {
				return err
			}
			t.spans(&before)
			return nil
		})
	c.Flags().BoolVar(&failed, "failed", false, "run the buckets that had failed items; required")
	return c
}

// spans tells of which partitions a rerun has buckets, too, that had no failed items.
func (t *Terminal) spans(w *progress.Work) {
	for i := range w.Partitions {
		if b := &w.Partitions[i].Buckets; b.FailedSpan {
			const say = "partition %s: %d buckets had failed items, in too many ranges to remember; " +
				"the run has all buckets from the first of them to the last\n"
			fmt.Fprintf(t.Err, say, w.Partitions[i].ID, b.Failed)
		}
	}
}
