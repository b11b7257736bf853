// Package logcli is the command logs: it shows what tasks write while they run.
package logcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/api/view"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/tasklog"
)

const (
	// pause is the time between two looks at what follows.
	pause = 500 * time.Millisecond
	// quiet is the time after the end of a task for which nothing has come when nothing more is waited for.
	quiet = 2 * time.Second
	// away is the time for which a command that follows asks again while nobody answers, as commands wait for a node.
	away = 30 * time.Second
)

// Terminal connects the command to the command line.
type Terminal struct {
	Print func(columns ...string) *output.Printer
	Err   io.Writer
	Sleep func(ctx context.Context, d time.Duration) // returns early when ctx ends
	// Ask makes a command one that asks a cluster. waits says that it may take as long as a task does.
	Ask func(
		c *cobra.Command, waits func() bool, run func(ctx context.Context, client operations.Logs, args []string) error,
	) *cobra.Command
	// Complete completes ids of tasks.
	Complete cobra.CompletionFunc
}

// asked holds the flags.
type asked struct {
	follow              bool
	attempt             int64
	level, since, until string
}

// Command returns the command.
func (t *Terminal) Command() *cobra.Command {
	var o asked
	c := &cobra.Command{
		Use:   "logs ID",
		Short: "Show what a task has written: the output of a program, and what functions log",
		Long: `Logs shows the lines of the newest 10 attempts of a task, one attempt after the other, the oldest first.
Where lines are missing, a line of level error says so. With --follow it goes on with what is written, until
the task has ended and nothing has come for 2 seconds.`,
		Args:              flags.Arguments,
		ValidArgsFunction: t.Complete,
	}
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on with what the task writes until it ends")
	c.Flags().Int64Var(&o.attempt, "attempt", 0, "only lines of the attempt of this `number`; 0 = of all")
	c.Flags().StringVar(&o.level, "level", tasklog.Info.String(), "least `level` of lines: info or error")
	completes := cobra.FixedCompletions(levels, cobra.ShellCompDirectiveNoFileComp)
	if err := c.RegisterFlagCompletionFunc("level", completes); err != nil {
		panic(err) // the flag is there
	}
	c.Flags().StringVar(&o.since, "since", "", "only lines of this `time` and later, such as 2026-11-21T12:00:00Z, or 10m: so long ago")
	c.Flags().StringVar(&o.until, "until", "", "only lines of this `time` and earlier")
	follows := func() bool { return o.follow }
	return t.Ask(c, follows, func(ctx context.Context, client operations.Logs, args []string) error {
		s, err := o.selection()
		if err != nil {
			return err
		}
		return t.Show(ctx, client, events.TaskID(args[0]), s, o.follow)
	})
}

// levels are the values of --level.
var levels = []string{tasklog.Info.String(), tasklog.Error.String()}

// selection returns the lines that the flags select.
func (o *asked) selection() (s tasklog.Selection, err error) {
	for name, text := range map[string]string{"since": o.since, "until": o.until} {
		at, err := flags.Time("--"+name, text, flags.Ago)
		if err != nil {
			return s, err
		}
		if name == "since" {
			s.Since = events.MillisOf(at)
		} else {
			s.Until = events.MillisOf(at)
		}
	}
	if o.attempt < 0 || o.attempt > math.MaxUint32 {
		problem := fmt.Sprintf("--attempt %d: want 1 to %d, or 0 for all", o.attempt, math.MaxUint32)
		return s, &exitcode.UsageError{Problem: problem}
	}
	s.Attempt = uint32(o.attempt)
	if s.Level, err = tasklog.ParseLevel(o.level); err != nil {
		return s, &exitcode.UsageError{Problem: "--" + err.Error()}
	}
	return s, nil
}

// Show prints the selected lines of a task that there are, and, if it follows, those that come until the task has
// ended. It uses Print, Err and Sleep alone.
func (t *Terminal) Show(
	ctx context.Context, client operations.Logs, id events.TaskID, s tasklog.Selection, follow bool,
) error {
	p := t.Print("TIME", "LEVEL", "ATTEMPT", "MESSAGE")
	silent, shown := time.Duration(0), 0 // since the task has ended; lines
	answered, unanswered := false, time.Duration(0)
	for {
		told, err := client.Log(ctx, id, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch nothing := len(told.Lines) == 0; {
		case err == nil:
			answered, unanswered = true, 0
		case nothing && follow && answered && exitcode.Of(err) == exitcode.Unavailable && unanswered < away:
			unanswered += pause
			t.Sleep(ctx, pause)
			continue
		case nothing: // without a heading of a table of nothing
			return err
		}
		for i := range told.Lines {
			v := view.OfLogLine(told.Lines[i])
			level, attempt := fmt.Sprintf("%-5s", v.Level), fmt.Sprintf("%-7d", v.Attempt) // alike on all pages
			err = errors.Join(err, p.Row(v, output.Time(v.Time), level, attempt, v.Message))
		}
		if err = errors.Join(err, p.Flush()); err != nil {
			return err
		}
		s.Cursor = told.Cursor
		shown += len(told.Lines)
		switch {
		case told.More:
			continue
		case !follow || silent >= quiet:
			if shown == 0 && !p.IsJSON() {
				fmt.Fprintln(t.Err, "no such line: the task has written none, or its node keeps no logs (serve --logs none)")
			}
			return nil
		case told.Ended && len(told.Lines) == 0:
			silent += pause
		default:
			silent = 0
		}
		t.Sleep(ctx, pause)
	}
}
