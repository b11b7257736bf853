package synccli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/collections/taskjson"
	"taskledger/events"
	"taskledger/task"
	"taskledger/tasklog"
)

func (t *Terminal) logs() *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use:   "logs SOURCE COLLECTION | ID",
		Short: "Show what the latest run of a collection, or the run of an id, has written",
		Long: `Logs shows the lines of the newest 10 attempts of a run, as the command logs does, which has further flags and
takes the id as SOURCE_COLLECTION/UUID.`,
		Args: cobra.RangeArgs(1, 2),
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what the run writes until it ends")
	follows := func() bool { return follow }
	return t.Ask(c, follows, func(ctx context.Context, client *Client, args []string) error {
		id, err := runOf(ctx, client, args)
		if err != nil {
			return err
		}
		return t.Logs.Show(ctx, client.Runs, id, tasklog.Selection{}, follow)
	})
}

// runOf returns the run that arguments name.
func runOf(ctx context.Context, client *Client, args []string) (events.TaskID, error) {
	if len(args) == 1 {
		id, err := taskjson.Read(args[0])
		if err != nil {
			return "", &exitcode.UsageError{Problem: err.Error() + ", or the names of a source and a collection"}
		}
		return id, nil
	}
	s, err := find(ctx, client.Schedules, args[0], args[1])
	if err != nil {
		return "", err
	}
	run, found, err := latest(ctx, client, s.Name)
	if err == nil && !found {
		err = fmt.Errorf("collection %s: no run is kept: %w", s.Name, task.ErrNotFound)
	}
	return run.ID, err
}
