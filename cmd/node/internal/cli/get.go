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
	"taskledger/cmd/node/internal/view"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

func (a *app) getCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "get ID...",
		Short: "Show tasks with parameters and result",
		Long: `Get shows tasks with parameters and result. One that retention has forgotten is read from the journal and the archive, as
history reads it, and is shown as it was last.`,
		Args:              arguments,
		Example:           a.examples(example{"everything, for a program", []string{"get", "report/2026-11", "-o", "json"}}),
		ValidArgsFunction: a.completeTasks,
	}
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, args []string) error {
		var errs []error
		p := a.print()
		for _, id := range args {
			t, err := client.Get(ctx, events.TaskID(id))
			if err == nil {
				err = printTask(p, t, now())
			}
			errs = append(errs, err)
		}
		return errors.Join(append(errs, p.Flush())...)
	})
}

// printTask writes one task as it is at a time, as a table one field a line.
func printTask(p *output.Printer, t projection.Task, now events.Millis) error {
	v, err := view.OfTask(t, now)
	if err != nil {
		return err
	}
	if p.IsJSON() {
		return p.Row(v)
	}
	lines := [][2]any{
		{"id", v.ID}, {"behavior", v.Behavior}, {"status", status(t)}, {"substatus", v.Substatus}, {"since", output.Time(v.Since)}, {"priority", v.Priority}, {"attempt", v.Attempt},
		{"failures", v.Failures}, {"lost", v.Lost}, {"creator", cmp.Or(v.Creator, "-")}, {"created", output.Time(v.CreatedAt)}, {"starts", output.Time(v.ScheduleNotBefore)},
		{"started", output.Time(v.StartedAt)}, {"ended", output.Time(v.EndedAt)}, {"node", cmp.Or(view.Owner(v.Node, v.Session), "-")},
		{"last node", cmp.Or(v.LastNode.String(), "-")},
	}
	if v.Progress != nil {
		lines = append(lines, [2]any{"progress", fmt.Sprintf("%d/%d %s", v.Progress.Done, v.Progress.Total, v.Progress.Note)})
	}
	if v.Params != nil {
		lines = append(lines, [2]any{"params", string(v.Params)})
	}
	if v.Result != nil {
		lines = append(lines, [2]any{"result", string(v.Result)})
	}
	if v.Error != nil {
		lines = append(lines, [2]any{"error", v.Error.Code + ": " + v.Error.Message})
	}
	for _, l := range lines {
		p.Row(nil, l[0], l[1]) // a table: errors come back from flush
	}
	return nil
}

// now is the time by this machine's clock.
func now() events.Millis { return events.MillisOf(time.Now()) }

// status is the status with what an operator, or retention, did to it.
func status(t projection.Task) string {
	text := t.Status.String()
	if t.Suspended {
		text += " suspended"
	}
	if t.Cancelled {
		text += " cancelled"
	}
	if t.Forgotten {
		text += " forgotten"
	}
	return text
}

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
func (a *app) list(ctx context.Context, client operations.Reader, f engine.Filter) error {
	var errs []error
	p := a.print("ID", "BEHAVIOR", "STATUS", "SUBSTATUS", "ATTEMPT", "NODE", "CREATED", "STARTS", "ENDED")
	for t, err := range client.List(ctx, f) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		v, err := view.OfTask(t, now())
		if err == nil {
			err = p.Row(v, v.ID, v.Behavior, status(t), v.Substatus, v.Attempt, cmp.Or(v.Node, "-"), output.Time(v.CreatedAt), output.Time(v.ScheduleNotBefore), output.Time(v.EndedAt))
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
