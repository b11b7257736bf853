package cli

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/task"
)

// completeWithin bounds how long a shell waits for what could come next.
const completeWithin = 2 * time.Second

func (a *app) completeBehaviors(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Name() == "submit" {
		return nil, cobra.ShellCompDirectiveDefault // parameters, perhaps a file
	}
	return a.complete(cmd, func(ctx context.Context, client operations.Client) []string { return behaviorsIn(ctx, client) })
}

// behaviorsIn returns the behaviors that nodes run; none where the cluster does not answer.
func behaviorsIn(ctx context.Context, client operations.Observer) (names []string) {
	nodes, _ := client.Nodes(ctx) // whoever completes a word, or is told of another error, has nowhere to read this one
	for _, n := range nodes {
		names = append(names, n.Behaviors...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (a *app) completeTasks(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.complete(cmd, func(ctx context.Context, client operations.Client) (words []string) {
		page, _ := client.ListPage(ctx, task.Filter{}, "") // whoever completes has nowhere to tell an error
		for _, t := range page.Tasks {
			words = append(words, string(t.ID))
		}
		return words
	})
}

// words offers the values that a flag may have.
func words(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

// completeFlag offers words for the value of a flag, which must exist.
func (a *app) completeFlag(cmd *cobra.Command, flag string, words cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, words); err != nil {
		panic(err)
	}
}

func (a *app) complete(cmd *cobra.Command, words func(context.Context, operations.Client) []string) (found []string, _ cobra.ShellCompDirective) {
	ctx, stop := context.WithTimeout(cmd.Context(), completeWithin)
	defer stop()
	if a.settings.apply(cmd.Flags()) != nil || a.access.check() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	quiet := *a
	quiet.Err = io.Discard
	_ = quiet.withClient(ctx, func(client operations.Client) error { // without a cluster there is nothing to offer
		found = words(ctx, client)
		return nil
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}
