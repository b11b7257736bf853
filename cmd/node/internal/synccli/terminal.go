package synccli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/logcli"
	"taskledger/cmd/node/internal/output"
	"taskledger/collections/apply"
	"taskledger/events"
	"taskledger/task"
	"taskledger/tasklog"
)

// Client asks a cluster.
type Client struct {
	Schedules operations.Schedules
	Stores    operations.Stores
	Nodes     apply.Nodes
	Shards    func(ctx context.Context) (int, error) // how many the cluster has
	Runs      Runs
}

// Runs reads runs, and what they write.
type Runs interface {
	Log(ctx context.Context, id events.TaskID, s tasklog.Selection) (tasklog.Told, error)
	ListPage(ctx context.Context, f task.Filter, cursor string) (task.Page, error)
}

// Terminal connects the commands to the command line.
type Terminal struct {
	In        io.Reader
	Err       io.Writer
	Print     func(columns ...string) *output.Printer
	Principal func() string // who asks
	// Ask makes a command one that asks a cluster. waits says that it may take longer than an answer does.
	Ask func(
		c *cobra.Command, waits func() bool, run func(ctx context.Context, client *Client, args []string) error,
	) *cobra.Command
	Complete cobra.CompletionFunc // of the ids of collections, SOURCE_COLLECTION

	Await func(ctx context.Context, client *Client, run operations.Handle) error // prints what becomes of a run
	Logs  *logcli.Terminal                                                       // shows the lines of a run
}

func never() bool { return false }

func always() bool { return true }
