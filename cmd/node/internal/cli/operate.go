package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// verbHelp is how the help explains a verb.
type verbHelp struct {
	verb        Verb
	short, long string
}

var taskVerbs = [...]verbHelp{
	{Cancel, "End tasks and let nothing of them start again",
		"A waiting task ends at once, as FAILURE with the code cancelled. A running one is asked to end; a success that comes first\ncounts. A task that has ended loses its next run; if it has none, it is refused."},
	{Suspend, "Keep tasks from starting", "A running attempt goes on."},
	{Resume, "End a suspension", ""},
	{Retry, "Give ended tasks a new run", "The new run starts now, with a fresh budget of attempts, whatever the outcome was."},
	{RunNow, "Start waiting tasks now", "The schedule of a waiting task becomes now."},
	{Delete, "Forget tasks that do not run", "The task is gone, and its id is free. Its history stays in the journal."},
}

var behaviorVerbs = [...]verbHelp{
	{Pause, "Keep tasks of a behavior from starting, in the whole cluster", "Running attempts go on; submits are accepted and wait."},
	{Unpause, "End a pause", ""},
}

func (a *app) verbCommands() (all []*cobra.Command) {
	for _, help := range taskVerbs {
		var reason string
		c := &cobra.Command{
			Use:               string(help.verb) + " ID...",
			Short:             help.short,
			Long:              help.text(),
			Args:              cobra.MinimumNArgs(1),
			ValidArgsFunction: a.completeTasks,
		}
		if help.verb == Cancel {
			c.Flags().StringVar(&reason, "reason", "", "why, for the history")
		}
		all = append(all, a.clientCommand(c, never, operate(help.verb, &reason)))
	}
	for _, help := range behaviorVerbs {
		c := &cobra.Command{
			Use:               string(help.verb) + " BEHAVIOR...",
			Short:             help.short,
			Long:              help.text(),
			Args:              cobra.MinimumNArgs(1),
			ValidArgsFunction: a.completeBehaviors,
		}
		all = append(all, a.clientCommand(c, never, operate(help.verb, new(string))))
	}
	return all
}

func (h verbHelp) text() string {
	if h.long == "" {
		return h.short + "."
	}
	return h.short + ".\n\n" + h.long
}

func operate(verb Verb, reason *string) func(context.Context, Client, []string) error {
	return func(ctx context.Context, client Client, args []string) error {
		var errs []error
		for _, on := range args {
			if err := client.Operate(ctx, verb, on, *reason); err != nil {
				errs = append(errs, fmt.Errorf("%s %s: %w", verb, on, err))
			}
		}
		return errors.Join(errs...)
	}
}
