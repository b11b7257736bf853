package cli

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/archiving"
	"taskledger/cmd/node/internal/suggest"
	"taskledger/task"
)

func (a *app) completeBehaviors(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Name() == "submit" {
		return nil, cobra.ShellCompDirectiveDefault // parameters, perhaps a file
	}
	return a.complete(cmd, func(ctx context.Context, client operations.Client) []string { return suggest.Behaviors(ctx, client) })
}

// completePaused completes the names of paused behaviors.
func (a *app) completePaused(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.complete(cmd, func(ctx context.Context, client operations.Client) (names []string) {
		set, _ := client.Settings(ctx) // whoever completes has nowhere to tell an error
		for _, p := range set.Paused {
			names = append(names, p.Behavior)
		}
		return names
	})
}

// completeNodes completes the names of nodes that are present.
func (a *app) completeNodes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.complete(cmd, func(ctx context.Context, client operations.Client) (names []string) {
		nodes, _ := client.Nodes(ctx) // whoever completes has nowhere to tell an error
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		return names
	})
}

// completeShards completes the numbers of shards.
func (a *app) completeShards(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.complete(cmd, func(ctx context.Context, client operations.Client) (numbers []string) {
		shards, _ := client.Shards(ctx) // whoever completes has nowhere to tell an error
		for _, s := range shards {
			numbers = append(numbers, strconv.Itoa(s.Shard))
		}
		return numbers
	})
}

func (a *app) completeTasks(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
	return a.completeOf(suggest.IDs)(cmd, args, part)
}

// completeOf completes what the newest tasks have of something.
func (a *app) completeOf(what func(*task.Task) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.complete(cmd, func(ctx context.Context, client operations.Client) []string {
			return suggest.Tasks(ctx, client, what)
		})
	}
}

// What tasks have that a filter names.
var (
	creatorOf = func(t *task.Task) []string { return []string{t.Creator} }

	affinityOf = func(t *task.Task) []string {
		affinity, _, _ := strings.Cut(string(t.ID), "/")
		return []string{affinity}
	}
)

// completionsOf returns what completes the fields of a filter; times have none.
func (a *app) completionsOf() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"status":          words(suggest.StatusNames()...),
		"substatus":       words(task.Substatuses()...),
		"behavior":        a.completeBehaviors,
		"affinity":        a.completeOf(affinityOf),
		"affinity-prefix": a.completeOf(affinityOf),
		"node":            a.completeNodes,
		"creator":         a.completeOf(creatorOf),
		"tag":             a.completeOf(suggest.Tags),
		"work":            words("true"),
	}
}

// completeFilter completes field=value.
func (a *app) completeFilter(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
	field, _, valued := strings.Cut(part, "=")
	if !valued {
		names, _ := task.FilterFields()
		for i := range names {
			names[i] += "="
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	values, has := a.completionsOf()[field]
	if !has {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, directive := values(cmd, args, "")
	found := make([]string, len(all)) // the other list may be that of each call
	for i := range all {
		found[i] = field + "=" + all[i]
	}
	return found, directive
}

// completeConcurrency completes behavior=N, of the behaviors that a node brings along.
func completeConcurrency(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, name := range []string{"checksum", "exec", "http", "noop", "sleep"} {
		names = append(names, name+"=")
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeNodeFlags completes the flags of serve, which check, health and the program without a command have, too.
func (a *app) completeNodeFlags(root *cobra.Command) {
	for flag, values := range map[string][]string{
		"archive":    {archiving.JetStream, archiving.Files, archiving.Keep, archiving.Drop},
		"durability": durabilities[1:],
		"store":      {storeInEtcd, storeInFiles},
		"logs":       {logsInJetStream, logsInFiles, noLogs},
		"log-level":  levels,
		"log-format": {"text", "json"},
		"shards":     {"1", "2", "4", "8", "16", "32", "64", "128", "256"},
	} {
		a.completeFlag(root, flag, words(values...))
	}
	a.completeFlag(root, "concurrency", completeConcurrency)
	a.completeFlag(root, "output", words("table", "json"))
}

// levels are the values of --log-level.
var levels = []string{"debug", "info", "warn", "error"}

// orFiles offers words, and beside them what a shell completes by itself.
func orFiles(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveDefault)
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

// complete offers words of a cluster, none where it does not answer.
func (a *app) complete(
	cmd *cobra.Command, words func(context.Context, operations.Client) []string,
) (found []string, _ cobra.ShellCompDirective) {
	ctx, stop := context.WithTimeout(cmd.Context(), suggest.Within)
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
