package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/workcli"
	"taskledger/events"
	"taskledger/task"
)

// verbHelp explains a verb in the help.
type verbHelp struct {
	verb        operations.Verb
	short, long string
}

var taskVerbs = [...]verbHelp{
	{operations.Cancel, "End tasks and let nothing of them start again",
		"A task that waits for its first attempt, or after one that was lost, given back or snoozed, ends at once, as FAILURE with the code\ncancelled. One that has failed and waits for a retry keeps that failure, and loses the retry. A running one is asked to end; a success\nthat comes first counts. A task that has ended loses its next run; if it has none, it is refused."},
	{operations.Suspend, "Keep tasks from starting", "A running attempt goes on, but those of a work end: suspend " +
		"waits until no\nbucket of it is open, 10 s at most, and says how many still are."},
	{operations.Resume, "Let suspended tasks start again", ""},
	{operations.Retry, "Give ended tasks a new run", "The new run starts now, with a fresh budget of attempts, whatever the outcome was. A task that is no longer kept\nbegins a new life instead, with the parameters and the policy that are recorded of it."},
	{operations.RunNow, "Start waiting tasks now", "A task that waits for its time is due at once."},
	{operations.Delete, "Delete tasks that do not run",
		"The task is gone, and its id is free. Its history stays in the journal."},
}

var behaviorVerbs = [...]verbHelp{
	{operations.Pause, "Keep tasks of a behavior from starting, in the whole cluster", "Running attempts go on; submits are accepted and wait. A behavior that no node runs is refused, unless --force pauses it\nbefore it is deployed."},
	{operations.Unpause, "Let tasks of paused behaviors start again", ""},
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
		if help.verb == operations.Cancel || help.verb == operations.Suspend {
			c.Flags().StringVar(&reason, "reason", "", "why, for the history; 256 bytes at most")
		}
		if _, ok := operations.OfMany[help.verb]; ok {
			c.Long += manyHelp
			many.flags(a, c, help.verb)
		}
		waits := func() bool { return many.given() || help.verb == operations.Suspend }
		all = append(all, a.clientCommand(c, waits, func(ctx context.Context, client operations.Client, args []string) error {
			if n := len(reason); n > events.MaxNameBytes { // the library would cut it
				return &task.LimitError{Field: "--reason", Limit: events.MaxNameBytes, Got: int64(n)}
			}
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
		if help.verb == operations.Unpause {
			c.ValidArgsFunction = a.completePaused
		}
		if help.verb == operations.Pause {
			c.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at the settings; 256 bytes at most")
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
		if err := events.TaskID(id).Validate(); err != nil {
			errs = append(errs, &exitcode.UsageError{Problem: fmt.Sprintf("%s %q: %v", verb, id, err)})
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...) // of any, so that nothing was done
	}
	done := map[string]bool{} // an id that is given twice is meant once
	for _, id := range ids {
		if done[id] {
			continue
		}
		done[id] = true
		idle := false
		if verb == operations.Resume {
			t, err := client.Get(ctx, events.TaskID(id))
			idle = err == nil && !t.Suspended
		}
		anew, err := a.operateTask(ctx, client, verb, id, reason)
		switch {
		case err != nil && verb == operations.Retry:
			errs = append(errs, naming(verb, id, err))
		case err != nil:
			errs = append(errs, naming(verb, id, orForgotten(err)))
		case anew:
			fmt.Fprintf(a.Err, "%s: task %s was no longer kept: it begins a new life, with the parameters and the policy that are recorded of it\n", a.Name, id)
		case idle:
			fmt.Fprintf(a.Err, "%s: task %s was not suspended\n", a.Name, id)
		}
	}
	return errors.Join(errs...)
}

// naming returns the error of a verb, which names the task once.
func naming(verb operations.Verb, id string, err error) error {
	if strings.HasPrefix(err.Error(), "task "+id+": ") || strings.HasPrefix(err.Error(), "state of "+id+": ") {
		return err
	}
	return fmt.Errorf("%s %s: %w", verb, id, err)
}

// operateTask does what a verb says within the time for an answer. Of a work that is suspended it waits for the
// buckets.
func (a *app) operateTask(ctx context.Context, client operations.Client, verb operations.Verb, id, reason string) (anew bool, err error) {
	ask, stop := a.answering(ctx)
	defer stop()
	anew, err = client.Operate(ask, verb, id, reason)
	if err == nil && verb == operations.Suspend {
		absent := func(err error) bool { return errors.Is(err, task.ErrNotFound) }
		switch open := workcli.AwaitBuckets(ctx, client.Works(), events.TaskID(id), absent, sleep); {
		case open > 0:
			fmt.Fprintf(a.Err, "%s: task %s is suspended, and %d of its buckets are open still\n", a.Name, id, open)
		case open < 0:
			fmt.Fprintf(a.Err, "%s: task %s is suspended, and how many of its buckets are open is not known: see work show\n",
				a.Name, id)
		}
	}
	return anew, err
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
		} else if !operations.Runs(nodes, behavior) && verb == operations.Pause && !force {
			errs = append(errs, fmt.Errorf("pause %s: %w: no node runs it; --force pauses it before it is deployed", behavior, task.ErrUnknownBehavior))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...) // of any, so that nothing was done
	}
	for _, behavior := range behaviors {
		unknown := !operations.Runs(nodes, behavior)
		paused := slices.ContainsFunc(set.Paused, func(p task.Pause) bool { return p.Behavior == behavior })
		if _, err := client.Operate(ctx, verb, behavior, reason); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", verb, behavior, err))
		} else if told := toldOf(verb, behavior, paused, unknown); told != "" {
			fmt.Fprintf(a.Err, "%s: behavior %s\n", a.Name, told)
		}
	}
	return errors.Join(errs...)
}

// toldOf says of a behavior what whoever paused it, or ended its pause, may not expect; "" if there is nothing of that
// kind.
func toldOf(verb operations.Verb, behavior string, paused, unknown bool) string {
	told := ""
	switch {
	case verb == operations.Pause && paused:
		told = behavior + " was paused already; the reason stays"
	case verb == operations.Unpause && !paused:
		told = behavior + " was not paused"
	case unknown && verb == operations.Unpause:
		told = behavior + " was paused, and is no longer"
	case unknown:
		told = behavior + " is paused"
	}
	if unknown {
		told += "; no node runs " + behavior
	}
	return told
}
