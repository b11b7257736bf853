package suggest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"taskledger/api/operations"
	"taskledger/schedule"
	"taskledger/task"
)

const (
	// Within bounds how long a cluster is asked for names.
	Within = 2 * time.Second
	// newest is the number of the newest tasks whose names are looked at.
	newest = 500
	// fewest is the least length of an id whose neighbors are looked for: shorter ones have too many.
	fewest = 3
	// mostMeant bounds the ids that are named.
	mostMeant = 3
)

// Behaviors returns the behaviors that nodes run; none where the cluster does not answer.
func Behaviors(ctx context.Context, client operations.Observer) (names []string) {
	nodes, _ := client.Nodes(ctx) // whoever completes a word, or is told of another error, has nowhere to read this one
	for _, n := range nodes {
		names = append(names, n.Behaviors...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Schedules returns the names of the first schedules of a behavior, "" of any; none where the cluster does not answer.
func Schedules(ctx context.Context, client operations.Client, behavior string) (names []string) {
	const most = 100
	found, _, _ := client.Schedules().List(ctx, schedule.Filter{Behavior: behavior}, "", most) // as Behaviors
	for i := range found {
		names = append(names, found[i].Name)
	}
	return names
}

// Tasks returns what the newest tasks have of something; none where the cluster does not answer.
func Tasks(ctx context.Context, client operations.Client, what func(*task.Task) []string) (words []string) {
	page, _ := client.ListPage(ctx, task.Filter{Limit: newest}, "") // as Behaviors
	for i := range page.Tasks {
		for _, word := range what(&page.Tasks[i]) {
			if word != "" && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	return words
}

// IDs and Tags select what Tasks returns.
var (
	IDs  = func(t *task.Task) []string { return []string{string(t.ID)} }
	Tags = func(t *task.Task) []string { return t.Tags }
)

// ID adds to the error of what was not found which names may be meant by the words that are none. names is asked for
// those that there are.
func ID(ctx context.Context, err error, words []string, names func(context.Context) []string) error {
	gone := errors.Is(err, task.ErrNotFound) || errors.Is(err, schedule.ErrNotFound)
	if !gone || ctx.Err() != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, Within)
	defer stop()
	all, there := []string(nil), names(ctx)
	for _, word := range words {
		if len(word) < fewest || slices.Contains(there, word) {
			continue
		}
		for _, name := range Near(word, there) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	if len(all) == 0 {
		return err
	}
	return fmt.Errorf("%w; is %s meant?", err, Or(all[:min(len(all), mostMeant)]))
}

// Nothing says on out why nothing was found of a behavior or a tag, "" of any: perhaps another one is meant.
func Nothing(ctx context.Context, out io.Writer, client operations.Client, behavior, tag string) {
	if behavior != "" {
		names := Behaviors(ctx, client)
		if len(names) > 0 && !slices.Contains(names, behavior) {
			fmt.Fprintf(out, "no node runs %s%s\n", behavior, Question(Near(behavior, names)))
		}
	}
	if tag != "" {
		tags := Tasks(ctx, client, Tags)
		if len(tags) > 0 && !slices.Contains(tags, tag) {
			fmt.Fprintf(out, "no task has the tag %s%s\n", tag, Question(Near(tag, tags)))
		}
	}
}
