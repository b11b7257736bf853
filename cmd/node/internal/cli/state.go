package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/rows"
	"taskledger/events"
	"taskledger/task"
)

func (a *app) stateCommand() *cobra.Command {
	var at string
	var seq uint64
	c := &cobra.Command{
		Use:   "state ID",
		Short: "Show a task as it was at a time, or after one of its events",
		Long: `State folds the events of a task up to a time (--at), or up to the event with a number (--seq, as history shows it) of its
present or last life. Times are those of the nodes' clocks. Exit code 3 means that the task was not there at that time.`,
		Args:              flags.Arguments,
		ValidArgsFunction: a.completeTasks,
	}
	c.Flags().StringVar(&at, "at", "", "`time`, such as 2026-11-21T12:00:00Z, or 10m: so long ago")
	c.Flags().Uint64Var(&seq, "seq", 0, "`number` of the event, from 1")
	c.MarkFlagsMutuallyExclusive("at", "seq")
	return a.readerCommand(c, never, func(ctx context.Context, client reader, args []string) error {
		switch {
		case c.Flags().Changed("seq") && seq == 0:
			return &exitcode.UsageError{Problem: "--seq 0: want 1 or more"}
		case at == "" && seq == 0:
			return &exitcode.UsageError{Problem: "state: want --at TIME, or --seq NUMBER"}
		}
		t, err := stateOf(ctx, client, events.TaskID(args[0]), at, seq)
		if err != nil {
			return err
		}
		p := a.print()
		return errors.Join(rows.Task(p, t), p.Flush())
	})
}

func stateOf(
	ctx context.Context, client operations.Historian, id events.TaskID, at string, seq uint64,
) (t task.Task, err error) {
	if at == "" {
		return client.Ledger().StateAfter(ctx, id, seq)
	}
	then, err := flags.Time("--at", at, flags.Ago)
	if err != nil {
		return t, err
	}
	if t, err = client.Ledger().StateAt(ctx, id, then); errors.Is(err, task.ErrNotFound) {
		err = fmt.Errorf("%w at %s: history shows when it was created", err, output.Time(events.MillisOf(then)))
	}
	return t, err
}
