package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/operations"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
)

// verbHelp is how the help explains a verb.
type verbHelp struct {
	verb        operations.Verb
	short, long string
}

var taskVerbs = [...]verbHelp{
	{operations.Cancel, "End tasks and let nothing of them start again",
		"A waiting task ends at once, as FAILURE with the code cancelled. A running one is asked to end; a success that comes first\ncounts. A task that has ended loses its next run; if it has none, it is refused."},
	{operations.Suspend, "Keep tasks from starting", "A running attempt goes on."},
	{operations.Resume, "End a suspension", ""},
	{operations.Retry, "Give ended tasks a new run", "The new run starts now, with a fresh budget of attempts, whatever the outcome was."},
	{operations.RunNow, "Start waiting tasks now", "The schedule of a waiting task becomes now."},
	{operations.Delete, "Forget tasks that do not run", "The task is gone, and its id is free. Its history stays in the journal."},
}

var behaviorVerbs = [...]verbHelp{
	{operations.Pause, "Keep tasks of a behavior from starting, in the whole cluster", "Running attempts go on; submits are accepted and wait. A behavior that no node runs is refused, unless --force pauses it\nbefore it is deployed."},
	{operations.Unpause, "End a pause", ""},
}

func (a *app) verbCommands() (all []*cobra.Command) {
	for _, help := range taskVerbs {
		var reason string
		var many manyOptions
		c := &cobra.Command{
			Use:               string(help.verb) + " ID...",
			Short:             help.short,
			Long:              help.text(),
			Args:              flags.Arguments,
			ValidArgsFunction: a.completeTasks,
		}
		if help.verb == operations.Cancel {
			c.Flags().StringVar(&reason, "reason", "", "why, for the history")
		}
		if _, ok := bulkOperations[help.verb]; ok {
			c.Long += manyHelp
			many.flags(c, help.verb)
		}
		all = append(all, a.clientCommand(c, many.given, func(ctx context.Context, client operations.Client, args []string) error {
			if many.given() {
				return a.operateMany(ctx, client, help.verb, many, reason)
			}
			return a.operateTasks(ctx, client, help.verb, args, reason)
		}))
	}
	for _, help := range behaviorVerbs {
		var force bool
		var reason string
		c := &cobra.Command{
			Use:               string(help.verb) + " BEHAVIOR...",
			Short:             help.short,
			Long:              help.text(),
			Args:              flags.Arguments,
			ValidArgsFunction: a.completeBehaviors,
		}
		if help.verb == operations.Pause {
			c.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at the settings")
			c.Flags().BoolVar(&force, "force", false, "also a behavior that no node runs yet")
		}
		all = append(all, a.clientCommand(c, never, func(ctx context.Context, client operations.Client, args []string) error {
			return a.operateBehaviors(ctx, client, help.verb, args, reason, force)
		}))
	}
	return all
}

func (h verbHelp) text() string {
	if h.long == "" {
		return h.short + "."
	}
	return h.short + ".\n\n" + h.long
}

func (a *app) operateTasks(ctx context.Context, client operations.Client, verb operations.Verb, ids []string, reason string) error {
	var errs []error
	for _, id := range ids {
		idle := false
		if verb == operations.Resume {
			t, err := client.Get(ctx, events.TaskID(id))
			idle = err == nil && !t.Suspended
		}
		if err := client.Operate(ctx, verb, id, reason); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", verb, id, err))
		} else if idle {
			fmt.Fprintf(a.Err, "%s: task %s was not suspended\n", a.Name, id)
		}
	}
	return errors.Join(errs...)
}

// operateBehaviors lets nobody pause a name with a typing error. To take a pause back is never refused.
func (a *app) operateBehaviors(ctx context.Context, client operations.Client, verb operations.Verb, behaviors []string, reason string, force bool) error {
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return err
	}
	set, err := client.Settings(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, behavior := range behaviors {
		if err := events.ValidateBehavior(behavior); err != nil {
			errs = append(errs, &exitcode.UsageError{Problem: fmt.Sprintf("%s %s: %v", verb, behavior, err)})
		} else if !runs(nodes, behavior) && verb == operations.Pause && !force {
			errs = append(errs, fmt.Errorf("pause %s: %w: no node runs it; --force pauses it before it is deployed", behavior, engine.ErrUnknownBehavior))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...) // of any, so that nothing was done
	}
	for _, behavior := range behaviors {
		unknown := !runs(nodes, behavior)
		if err := client.Operate(ctx, verb, behavior, reason); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", verb, behavior, err))
		} else if unknown {
			fmt.Fprintf(a.Err, "%s: no node runs %s\n", a.Name, behavior)
		} else if paused := set.Paused(behavior); paused == (verb == operations.Pause) {
			was := "not paused"
			if paused {
				was = "paused already; the reason stays"
			}
			fmt.Fprintf(a.Err, "%s: behavior %s was %s\n", a.Name, behavior, was)
		}
	}
	return errors.Join(errs...)
}

// runs reports whether any of the nodes has the code of a behavior.
func runs(nodes []store.NodeInfo, behavior string) bool {
	return slices.ContainsFunc(nodes, func(n store.NodeInfo) bool { return slices.Contains(n.Behaviors, behavior) })
}
