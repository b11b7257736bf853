package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/operations"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/rows"
	"taskledger/cmd/node/internal/view"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

func (a *app) getCommand() *cobra.Command {
	var forgotten bool
	c := &cobra.Command{
		Use:   "get ID...",
		Short: "Show tasks with parameters and result",
		Long: `Get shows tasks with parameters and result, as the owners of their shards have them. One that retention has forgotten is looked
for with --forgotten alone: it is read from the journal and the archive, as history reads it, and shown as it was last. That
takes longer, also where there is no such task.`,
		Args:              arguments,
		Example:           a.examples(example{"everything, for a program", []string{"get", "report/2026-11", "-o", "json"}}),
		ValidArgsFunction: a.completeTasks,
	}
	c.Flags().BoolVar(&forgotten, "forgotten", false, "look for tasks that are no longer kept in the journal and the archive, too")
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, args []string) error {
		get := client.Get
		if forgotten {
			get = client.GetForgotten
		}
		var errs []error
		p := a.print()
		for _, id := range args {
			t, err := get(ctx, events.TaskID(id))
			switch {
			case err == nil:
				err = rows.Task(p, t, client.Ledger().Version(&t), now())
			case errors.Is(err, engine.ErrNotFound) && !forgotten:
				err = fmt.Errorf("%w, or it is no longer kept: get --forgotten looks for it in the journal and the archive", err)
			}
			errs = append(errs, err)
		}
		return errors.Join(append(errs, p.Flush())...)
	})
}

// now is the time by this machine's clock.
func now() events.Millis { return events.MillisOf(time.Now()) }

func (a *app) listCommand() *cobra.Command {
	var f engine.Filter
	var statusName, substatusName string
	c := &cobra.Command{
		Use:   "list",
		Short: "List tasks",
		Long:  "List shows the tasks that match every flag given, by shard and id.",
		Args:  cobra.NoArgs,
		Example: a.examples(example{"what has failed for good or waits for a retry",
			[]string{"list", "--status", "FAILURE", "--behavior", "http"}}),
	}
	c.Flags().StringVar(&statusName, "status", "", "CREATED, RUNNING, SUCCESS or FAILURE")
	c.Flags().StringVar(&substatusName, "substatus", "", strings.Join(projection.Substatuses(), ", "))
	c.Flags().StringVar(&f.Behavior, "behavior", "", "its behavior")
	c.Flags().StringVar(&f.Affinity, "affinity", "", "the part of its id before the slash")
	c.Flags().StringVar(&f.Node, "node", "", "name or session id of the node that runs it")
	c.Flags().IntVar(&f.Limit, "limit", 100, "most tasks to list, 1 to 1000")
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, _ []string) (err error) {
		if f.Limit < 1 || f.Limit > 1000 {
			return &exitcode.UsageError{Problem: "--limit: want 1 to 1000"}
		}
		if statusName != "" {
			if f.Status, err = projection.ParseStatus(statusName); err != nil {
				return &exitcode.UsageError{Problem: err.Error()}
			}
		}
		if substatusName != "" {
			if f.Substatus, err = projection.ParseSubstatus(substatusName); err != nil {
				return &exitcode.UsageError{Problem: err.Error()}
			}
		}
		if f.Node != "" {
			if f.Node, err = sessionOf(ctx, client, f.Node); err != nil {
				return err
			}
		}
		return a.list(ctx, client, f)
	})
}

// list prints what it can reach, and returns what it could not.
func (a *app) list(ctx context.Context, client operations.Client, f engine.Filter) error {
	var errs []error
	p := a.print("ID", "BEHAVIOR", "STATUS", "SUBSTATUS", "ATTEMPT", "NODE", "CREATED", "STARTS", "ENDED")
	for t, err := range client.List(ctx, f) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		v, err := view.OfTask(t, client.Ledger().Version(&t), now())
		if err == nil {
			err = p.Row(v, v.ID, v.Behavior, rows.Status(t), v.Substatus, v.Attempt, cmp.Or(v.Node, "-"), output.Time(v.CreatedAt), output.Time(v.ScheduleNotBefore), output.Time(v.EndedAt))
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, p.Flush())...)
}

// sessionOf returns the session id of the node with a name, which must be present and the only one of that name. A session id is taken as
// it is: that of a node that has died may still be in tasks.
func sessionOf(ctx context.Context, client operations.Observer, node string) (string, error) {
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return "", err
	}
	var named, present []string
	for _, n := range nodes {
		if n.ID == node {
			return node, nil
		}
		if n.Name == node || store.NodeName(n.ID) == node {
			named = append(named, n.ID)
		}
		present = append(present, n.Name)
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) > 1:
		return "", &exitcode.UsageError{Problem: fmt.Sprintf("--node %s: %d nodes have that name; choose one of the sessions %s", node, len(named), strings.Join(named, ", "))}
	case store.IsSessionID(node):
		return node, nil
	case len(present) == 0:
		return "", &exitcode.UsageError{Problem: fmt.Sprintf("--node %s: no node is present", node)}
	}
	return "", &exitcode.UsageError{Problem: fmt.Sprintf("--node %s: no node of that name is present; there are %s", node, strings.Join(slices.Sorted(slices.Values(present)), ", "))}
}
