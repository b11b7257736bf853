package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/rows"
	"taskledger/cmd/node/internal/suggest"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// pageTasks is the number of tasks asked for at once.
const pageTasks = 500

func (a *app) listCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List tasks, newest first",
		Long: `List shows the tasks that match every flag given, newest first by their creation. When there are more
than --limit, it prints the cursor with which it goes on. It names shards that have not answered after 3 seconds, and
shows their tasks at the end of the list, once they answer. Times are local, with their zone. NODE ran the last attempt, and ERROR
is the beginning of the last failure: get has the whole. --status RUNNING also selects the tasks that wait to run
again after a snooze, a loss or a release; --substatus running selects those that run. A repeated task that waits for
its next run has the status of its last one.`,
		Args: flags.NoArguments,
	}
	filter := a.filterFlags(c)
	var limit int
	var cursor string
	c.Flags().IntVar(&limit, "limit", 100, "most tasks to list; 0 = all")
	c.Flags().StringVar(&cursor, "cursor", "",
		"the cursor that an earlier list with the same flags printed: go on there")
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, _ []string) error {
		switch {
		case limit < 0:
			return &exitcode.UsageError{Problem: fmt.Sprintf("--limit %d: want 0 or more", limit)}
		case limit == 0:
			limit = math.MaxInt
		}
		f, again, err := filter(ctx, client)
		if err != nil {
			return err
		}
		listed, err := a.list(ctx, client, f, limit, cursor, again)
		if listed == 0 && err == nil {
			suggest.Nothing(ctx, a.Err, client, f.Behavior, f.Tag)
		}
		return ofSession(err, c.Flag("node").Value.String(), f.Node, cursor)
	})
}

// ofSession says of a cursor that is refused that the node may be another one now: a cursor is of the session that has
// had the name.
func ofSession(err error, node, session, cursor string) error {
	if invalid, ok := errors.AsType[*store.InvalidError](err); ok && invalid.Field == "cursor" && cursor != "" && node != session {
		return fmt.Errorf("%w; or node %s, which is %s now, has begun another session since: go on with --node and the session id of before, or begin anew", err, node, session)
	}
	return err
}

// filterFlags adds a flag for each field of a filter, and returns what reads them once they are parsed: the filter, and
// the flags that stand for those which were given as durations when the filter is to be the same again.
func (a *app) filterFlags(
	c *cobra.Command,
) func(context.Context, operations.Observer) (f task.Filter, again []string, err error) {
	names, values := task.FilterFields()
	texts := make([]string, len(names))
	for i, name := range names {
		if isTime(name) {
			values[i] += ", a `time` such as 2026-11-23T06:00:00Z, or 10m: so long ago"
		}
		c.Flags().StringVar(&texts[i], name, "", values[i])
	}
	for name, values := range a.completionsOf() {
		a.completeFlag(c, name, values)
	}
	return func(ctx context.Context, client operations.Observer) (f task.Filter, again []string, err error) {
		for i, name := range names {
			if !c.Flags().Changed(name) {
				continue
			}
			if texts[i] == "" { // a variable that is not set would list all
				return f, nil, &exitcode.UsageError{Problem: "--" + name + ": it is empty"}
			}
			text, err := fieldText("--"+name, name, texts[i])
			if err != nil {
				return f, nil, err
			}
			if isTime(name) && text != texts[i] {
				again = append(again, "--"+name, text)
			}
			if err := f.Set(name, text); err != nil {
				return f, nil, &exitcode.UsageError{Problem: "--" + err.Error() + suggest.Value(name, text)}
			}
		}
		f.Node, err = sessionOf(ctx, client, f.Node)
		return f, again, err
	}
}

// isTime reports whether a field of a filter is a time.
func isTime(field string) bool {
	return strings.HasSuffix(field, "-from") || strings.HasSuffix(field, "-to")
}

// fieldText returns the text of a field of a filter as task.Filter.Set takes it: a status in capitals, and a duration
// as the time that is so long ago. what names the flag.
func fieldText(what, field, text string) (string, error) {
	switch {
	case field == "status":
		return strings.ToUpper(text), nil
	case !isTime(field) || text == "":
		return text, nil
	}
	at, err := flags.Time(what, text, flags.Ago)
	if _, parse := time.Parse(time.RFC3339, text); err != nil || parse == nil {
		return text, err
	}
	return output.Time(events.MillisOf(at)), nil
}

// list prints what it can reach, page by page, and returns what it could not. While nobody answers for a shard, it
// waits. again holds flags to be given beside the cursor. It returns how many tasks it has listed.
func (a *app) list(
	ctx context.Context, client operations.Client, f task.Filter, limit int, cursor string, again []string,
) (listed int, _ error) {
	p := a.print("ID", "BEHAVIOR", "STATUS", "SUBSTATUS", "SINCE", "ATTEMPT", "NODE", "CREATED", "STARTS", "ENDED", "TAGS", "ERROR")
	var errs []error
	for first, said, more := true, false, true; more; first = false {
		f.Limit = min(limit, pageTasks)
		page, err := client.ListPage(ctx, f, cursor)
		if err != nil && first && len(page.Tasks) == 0 && len(page.Missing) == 0 {
			return 0, err
		}
		listed += len(page.Tasks)
		for _, t := range page.Tasks {
			errs = append(errs, listTask(p, &t))
		}
		limit -= len(page.Tasks)
		if page.Cursor != "" || err == nil {
			cursor = page.Cursor
		}
		silent := silentShards(page.Missing)
		if silent != "" && !said {
			said = true
			errs = append(errs, p.Flush())
			fmt.Fprintf(a.Err, "waiting for the shards %s: nobody answers\n", silent)
		}
		if more = err == nil && limit > 0 && cursor != "" && (!page.Through || silent != ""); !more {
			for _, m := range page.Missing {
				errs = append(errs, m.Err)
			}
			errs = append(errs, err)
		}
	}
	errs = append(errs, p.Flush())
	if cursor != "" {
		fmt.Fprintf(a.Err, "there may be more: go on with %s\n", strings.Join(append(again, "--cursor", cursor), " "))
	}
	return listed, errors.Join(errs...)
}

func listTask(p *output.Printer, t *task.Task) error {
	return p.Row(
		t, t.ID, t.Behavior, rows.Status(t), t.Substatus, output.Time(t.Since), t.Attempt,
		cmp.Or(t.Node, store.NodeName(t.LastNode), "-"),
		output.Time(t.CreatedAt), output.Time(t.ScheduleNotBefore), output.Time(t.EndedAt),
		cmp.Or(strings.Join(t.Tags, " "), "-"), errorCut(t.Error),
	)
}

// errorCut is the beginning of an error, for a column.
func errorCut(e *events.Error) string {
	if e == nil {
		return "-"
	}
	const most = 80
	text := strings.Join(strings.Fields(e.Code+": "+e.Message), " ")
	if cut := events.Head(text, most); cut != text {
		return cut + "..."
	}
	return text
}

// silentShards names the shards for which nobody answers.
func silentShards(missing []task.Missing) string {
	var names []string
	for _, m := range missing {
		if m.Silent {
			names = append(names, strconv.Itoa(m.Shard))
		}
	}
	return strings.Join(names, ", ")
}

// sessionOf returns the session id of the node with a name, which must be present and the only one of that name. A
// session id is taken as it is: that of a node that has died may still be in tasks. Of "" it is "".
func sessionOf(ctx context.Context, client operations.Observer, node string) (string, error) {
	if node == "" {
		return "", nil
	}
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
