package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/outcomes"
	"taskledger/events"
)

func (a *app) waitCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "wait ID...",
		Short: "Wait for outcomes and print the results",
		Long: `Wait prints the result of each task as JSON text, and nothing for a task without result. It waits for
all of them side by side, and prints them in the order of their ids. It ends with exit code 1 when a task failed, with 4 when
--timeout passed; of several ids with the first of 1, 2, 6, 3 and 4 that one of them has. While no node is alive it goes on
waiting, and says so.`,
		Args:              flags.Arguments,
		ValidArgsFunction: a.completeTasks,
	}
	return a.clientCommand(c, always, func(ctx context.Context, client operations.Client, args []string) error {
		handles := make([]operations.Handle, len(args))
		for i, id := range args {
			handles[i] = client.Attach(events.TaskID(id))
		}
		defer a.tellNoNode(ctx, client)()
		if len(args) == 1 {
			defer a.tellFailures(ctx, client, events.TaskID(args[0]))()
		}
		return a.awaitAll(ctx, handles)
	})
}

// await is awaitAll of one task.
func (a *app) await(ctx context.Context, handle operations.Handle) error {
	return a.awaitAll(ctx, []operations.Handle{handle})
}

// awaitAll waits for tasks side by side, and prints their outcomes. Whoever interrupts it is told how to wait again.
func (a *app) awaitAll(ctx context.Context, handles []operations.Handle) error {
	err := outcomes.Await(ctx, a.Out, a.print().IsJSON(), handles)
	if !errors.Is(err, context.Canceled) || ctx.Err() == nil {
		return err
	}
	args := []string{"wait"}
	for _, h := range handles[:min(len(handles), mostNamed)] {
		args = append(args, string(h.ID()))
	}
	again := a.command(append(args, a.access.given("data")...)...)
	if len(handles) > mostNamed {
		again += ", and so on"
	}
	return errors.Join(&pausedError{"what was waited for goes on; wait again with: " + again, context.Canceled}, err)
}

// mostNamed bounds the tasks that are named to whoever interrupts the wait for them.
const mostNamed = 5
