package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/events"
	"taskledger/projection"
)

func (a *app) stateCommand() *cobra.Command {
	var at string
	var seq uint64
	c := &cobra.Command{
		Use:   "state ID",
		Short: "Show a task as it was at a time, or after one of its events",
		Long: `State folds the events of a task up to a time (--at), or up to the event with a number (--seq, as history shows it) of its
present or last life. Times are those of the nodes' clocks. Exit code 3 means that the task was not there at that time.`,
		Args: cobra.ExactArgs(1),
		Example: a.examples(
			example{"what was known at noon", []string{"state", "report/2026-11", "--at", "2026-11-21T12:00:00Z"}},
			example{"right after it was created", []string{"state", "report/2026-11", "--seq", "1"}}),
		ValidArgsFunction: a.completeTasks,
	}
	c.Flags().StringVar(&at, "at", "", "`time`, such as 2026-11-21T12:00:00Z")
	c.Flags().Uint64Var(&seq, "seq", 0, "`number` of the event, from 1")
	c.MarkFlagsMutuallyExclusive("at", "seq")
	c.MarkFlagsOneRequired("at", "seq")
	return a.clientCommand(c, never, func(ctx context.Context, client Client, args []string) error {
		t, err := stateOf(ctx, client, events.TaskID(args[0]), at, seq)
		if err != nil {
			return err
		}
		p := a.print()
		return errors.Join(printTask(p, t), p.flush())
	})
}

func stateOf(ctx context.Context, client Historian, id events.TaskID, at string, seq uint64) (projection.Task, error) {
	if at == "" {
		return client.Ledger().StateAfter(ctx, id, seq)
	}
	when, err := timeFlag("at", at)
	if err != nil {
		return projection.Task{}, err
	}
	return client.Ledger().StateAt(ctx, id, when)
}

// timeFlag reads a time, the zero one from nothing.
func timeFlag(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, &usageError{fmt.Sprintf("--%s %s: want a time such as %s", name, text, time.Now().UTC().Format(time.RFC3339))}
	}
	return at, nil
}
