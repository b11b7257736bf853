package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cluster"
	"taskledger/cmd/node/internal/connect"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/suggest"
	"taskledger/collections"
	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/task"
)

// clientCommand makes a command that asks a cluster. waits says that it may take as long as a task does.
func (a *app) clientCommand(c *cobra.Command, waits func() bool, run func(ctx context.Context, c operations.Client, args []string) error) *cobra.Command {
	c.Flags().AddFlagSet(a.access.flags())
	flags.LevelVar(c.Flags(), &a.access.logLevel, slog.LevelError)
	mark(c.Flags().Lookup("log-level"))
	a.completeFlag(c, "log-level", words(levels...))
	c.RunE = func(cmd *cobra.Command, args []string) error {
		limit, over := a.access.timeout, exitcode.ErrNoOutcome
		if !waits() {
			limit, over = cmp.Or(limit, answerWithin), exitcode.ErrTimeout
		}
		ctx := cmd.Context()
		if limit > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeoutCause(ctx, limit, over)
			defer stop()
		}
		if a.access.await || len(a.access.addresses.Etcd) == 0 { // who serves a directory is a node, and about to join
			ctx = task.AwaitNodes(ctx)
		}
		return a.withRemedy(a.withClient(ctx, func(c operations.Client) error {
			return orNear(ctx, c, cmd, args, run(ctx, c, args))
		}))
	}
	return c
}

// orNear adds to the error of a task, a schedule or a collection that was not found which one may be meant.
func orNear(ctx context.Context, client operations.Client, cmd *cobra.Command, args []string, err error) error {
	behavior := ""
	switch cmd.Parent().Name() {
	case "store", "token": // their ids are numbers, or drawn
		return err
	case "sync":
		behavior, args = collections.Behavior, []string{strings.Join(args, "_")}
	case "schedule":
		args = args[:min(len(args), 1)]
	default:
		if of := cmd.Flag("task"); of != nil && of.Changed {
			args = append(slices.Clone(args), of.Value.String())
		}
		return suggest.ID(ctx, err, args, func(ctx context.Context) []string {
			return suggest.Tasks(ctx, client, suggest.IDs)
		})
	}
	return suggest.ID(ctx, err, args, func(ctx context.Context) []string {
		return suggest.Schedules(ctx, client, behavior)
	})
}

// withRemedy adds what to do to damage that a command has met itself, as the owner of a shard does, and to the want of
// nodes.
func (a *app) withRemedy(err error) error {
	if errors.Is(err, task.ErrNoNode) {
		return fmt.Errorf("%w; start one with: %s%s", err, a.startNode(), a.orAwait())
	}
	if !errors.Is(err, events.ErrDamaged) {
		return err
	}
	given := a.access.given("data")
	return fmt.Errorf("%w; remedy: %s tells it of a shard that is quarantined; else restore from a backup what %s names", err,
		a.command(append([]string{"shards"}, given...)...), a.command(append([]string{"verify"}, given...)...))
}

// orAwait names the flag that waits for a node, unless it was given.
func (a *app) orAwait() string {
	if a.access.await {
		return ""
	}
	return "; --await-node waits for one"
}

// answering bounds the wait for answers of the cluster: by --timeout, else by answerWithin.
func (a *app) answering(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, cmp.Or(a.access.timeout, answerWithin), exitcode.ErrTimeout)
}

func never() bool { return false }

func always() bool { return true }

// withClient runs fn with a client that leaves nothing behind.
func (a *app) withClient(ctx context.Context, fn func(operations.Client) error) (err error) {
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: a.access.logLevel}))
	link, err := a.reach(ctx, log)
	if errors.Is(err, cluster.ErrNoNode) {
		dir, hint := "data", a.orAwait()
		if errors.Is(err, etcdstore.ErrNoCluster) { // a node of another one runs there
			dir, hint = "join", ""
		}
		return fmt.Errorf("%w%s; start one with: %s", err, hint, a.serveOn(dir)) // which can be copied from the end
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	if link.API != nil {
		return fn(link.API)
	}
	client, err := engine.NewClient(engine.ClientConfig{
		Store:   link.Store,
		Bus:     link.Bus,
		Archive: link.Archive,
		Logs:    link.Logs,
		Name:    principal(),
		Log:     log,
	})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- client.Run(run) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	return fn(operations.Direct{Client: client})
}

// reach links to the cluster. While that is away it waits as long as answers may take, and says so.
func (a *app) reach(ctx context.Context, log *slog.Logger) (*connect.Link, error) {
	awaited := connect.Starts
	if a.access.await {
		awaited = connect.Anything
	}
	return a.link(ctx, awaited, func(ctx context.Context) (*connect.Link, error) { return a.access.ask(ctx, log) })
}

// link opens a link to servers that may be starting.
func (a *app) link(
	ctx context.Context, awaited connect.Awaited, open func(context.Context) (*connect.Link, error),
) (*connect.Link, error) {
	ctx, stop := a.answering(ctx)
	defer stop()
	return connect.Await(ctx, awaited, open, func() {
		where := "the node on " + a.access.dir
		if etcd := a.access.addresses.Etcd; len(etcd) > 0 {
			where = "etcd at " + strings.Join(etcd, ", ")
		}
		fmt.Fprintf(a.Err, "%s: waiting for %s, for %s at most\n", a.Name, where, cmp.Or(a.access.timeout, answerWithin))
	})
}

// principal returns the name under which the ledger records the caller: USER@HOST.
func principal() string {
	name := "cli"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name[:min(len(name), 256)]
}
