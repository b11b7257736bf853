// Package synccli is the command sync: it makes collections what a file says, and runs, shows and steers them.
package synccli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/logcli"
	"taskledger/cmd/node/internal/output"
	"taskledger/collections"
	"taskledger/collections/taskjson"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/task"
)

// Client asks a cluster.
type Client interface {
	operations.Logs
	operations.Observer
	ListPage(ctx context.Context, f task.Filter, cursor string) (task.Page, error)
	Stores() operations.Stores
	Schedules() operations.Schedules
}

// Terminal connects the commands to the command line.
type Terminal struct {
	In        io.Reader
	Err       io.Writer
	Print     func(columns ...string) *output.Printer
	Principal func() string // who asks
	// Ask makes a command one that asks a cluster. waits says that it may take longer than an answer does.
	Ask func(
		c *cobra.Command, waits func() bool, run func(ctx context.Context, client Client, args []string) error,
	) *cobra.Command
	Await func(ctx context.Context, client Client, run operations.Handle) error // prints what becomes of a run
	Logs  *logcli.Terminal                                                      // shows the lines of a run
	// Example shows how apply is used.
	Example string
}

// Command returns the command, with its subcommands.
func (t *Terminal) Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "sync",
		Short: "Keep collections up to date, as a file of sources says",
		Long: `Sync makes the collections of the cluster those of a YAML file, and runs, shows and steers them. A collection is a
schedule of behavior collection, SOURCE_COLLECTION; its runs are tasks. docs/sync.md describes the file.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(t.apply(), t.diff(), t.run(), t.list(), t.logs(), t.steer(pause), t.steer(resume))
	return c
}

func never() bool { return false }

func always() bool { return true }

// find returns the schedule of a collection.
func find(ctx context.Context, all operations.Schedules, source, name string) (schedule.Schedule, error) {
	id := source + "_" + name
	s, err := all.Get(ctx, id)
	if err != nil {
		return s, err
	}
	if c, is := collectionOf(&s); !is || c.Source != source || c.Name != name {
		return s, fmt.Errorf("collection %.64q of source %.64q: %w", name, source, schedule.ErrNotFound)
	}
	return s, nil
}

// collectionOf returns the collection that a schedule is of; false = it is of none.
func collectionOf(s *schedule.Schedule) (collections.Collection, bool) {
	if s.Definition.Behavior != collections.Behavior {
		return collections.Collection{}, false
	}
	c, err := collections.Of(s.Definition)
	return c, err == nil && c.ID() == s.Name
}

// latest returns the latest run of a collection; false = none is kept.
func latest(ctx context.Context, client Client, id string) (t task.Task, found bool, err error) {
	filter := task.Filter{Behavior: collections.Behavior, Affinity: id, Limit: 1}
	for cursor := ""; ; {
		page, err := client.ListPage(ctx, filter, cursor)
		switch {
		case err != nil:
			return t, false, err
		case len(page.Missing) > 0:
			return t, false, page.Missing[0].Err
		case len(page.Tasks) > 0:
			return page.Tasks[0], true, nil
		case page.Through || page.Cursor == "":
			return t, false, nil
		}
		cursor = page.Cursor
	}
}

// shownID returns the id of a run as others see it; that of a task which nobody may show so is its own.
func shownID(id events.TaskID) string {
	if text, err := taskjson.Shown(id); err == nil {
		return text
	}
	return string(id)
}
