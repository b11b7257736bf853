package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/collections"
	"taskledger/schedule"
	"taskledger/task"
)

const (
	// fewest is the least length of an id whose neighbors are looked for: shorter ones have too many.
	fewest = 3
	// mostMeant bounds the ids that are named.
	mostMeant = 3
)

// orNear adds to the error of a task, a schedule or a collection that was not found which one may be meant.
func (a *app) orNear(
	ctx context.Context, client operations.Client, cmd *cobra.Command, args []string, err error,
) error {
	gone := errors.Is(err, task.ErrNotFound) || errors.Is(err, schedule.ErrNotFound)
	if !gone || ctx.Err() != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, completeWithin)
	defer stop()
	var names []string
	switch cmd.Parent().Name() {
	case "store", "token": // their ids are numbers, or drawn
		return err
	case "schedule":
		names, args = schedulesIn(ctx, client, ""), args[:min(len(args), 1)]
	case "sync":
		names, args = schedulesIn(ctx, client, collections.Behavior), []string{strings.Join(args, "_")}
	default:
		page, _ := client.ListPage(ctx, task.Filter{Limit: pageTasks}, "") // the error that is there says enough
		for i := range page.Tasks {
			names = append(names, string(page.Tasks[i].ID))
		}
		if of := cmd.Flag("task"); of != nil && of.Changed {
			args = append(slices.Clone(args), of.Value.String())
		}
	}
	return withMeant(err, args, names)
}

// withMeant adds to an error which names may be meant by words that are none.
func withMeant(err error, words, names []string) error {
	var all []string
	for _, word := range words {
		if len(word) < fewest || slices.Contains(names, word) {
			continue
		}
		for _, name := range near(word, names) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	if len(all) == 0 {
		return err
	}
	return fmt.Errorf("%w; is %s meant?", err, or(all[:min(len(all), mostMeant)]))
}

// tellNothing says why nothing was found of a behavior or a tag: perhaps another one is meant.
func (a *app) tellNothing(ctx context.Context, client operations.Client, behavior, tag string) {
	if behavior != "" {
		names := behaviorsIn(ctx, client)
		if len(names) > 0 && !slices.Contains(names, behavior) {
			fmt.Fprintf(a.Err, "%s: no node runs %s%s\n", a.Name, behavior, isMeant(near(behavior, names)))
		}
	}
	if tag == "" {
		return
	}
	page, _ := client.ListPage(ctx, task.Filter{Limit: pageTasks}, "") // of an aid, no error is told
	var tags []string
	for i := range page.Tasks {
		for _, one := range page.Tasks[i].Tags {
			if !slices.Contains(tags, one) {
				tags = append(tags, one)
			}
		}
	}
	if len(tags) > 0 && !slices.Contains(tags, tag) {
		fmt.Fprintf(a.Err, "%s: no task has the tag %s%s\n", a.Name, tag, isMeant(near(tag, tags)))
	}
}
