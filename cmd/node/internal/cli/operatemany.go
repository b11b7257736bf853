package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/bulk"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/requests"
	"taskledger/cmd/node/internal/suggest"
	"taskledger/task"
)

const manyHelp = `

With --filter the command takes every task that matches all the fields, which are those of list: without --yes it
counts them, and changes nothing. It leaves tasks as they are that make an event after it has begun; cancel alone
looks at them again, and cancels those that still match. After an interruption the same command with the --cursor that
it printed last goes on: no task is changed twice. It takes as long as there are tasks, unless --timeout ends it.`

// manyOptions are the flags of a verb that takes a filter.
type manyOptions struct {
	filters []string
	yes     bool
	cursor  string
}

// flags adds the flags of many tasks to a verb.
func (o *manyOptions) flags(a *app, c *cobra.Command, verb operations.Verb) {
	names, _ := task.FilterFields()
	flags.TextsVar(c.Flags(), &o.filters, "filter", "instead of ids, all tasks with this `field=value`, again and again for more fields: "+strings.Join(names, ", "))
	a.completeFlag(c, "filter", a.completeFilter)
	c.Flags().BoolVar(&o.yes, "yes", false, "with --filter, carry out "+string(verb)+"; without --yes the tasks are only counted")
	c.Flags().StringVar(&o.cursor, "cursor", "",
		"with --filter, the cursor that an interrupted call printed last: go on there")
	c.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(o.filters) > 0 && len(args) > 0:
			return fmt.Errorf("--filter: it selects the tasks, and there is %q beside it", args)
		case len(o.filters) > 0:
			return nil
		case o.yes || o.cursor != "":
			return errors.New("--yes and --cursor: they are about --filter")
		}
		return flags.Arguments(cmd, args)
	}
}

// given reports whether a filter selects the tasks: that takes as long as there are tasks.
func (o *manyOptions) given() bool { return len(o.filters) > 0 }

// texts returns the fields as task.ParseFilter takes them, and those which were given as durations as flags to be given
// beside a cursor.
func (o *manyOptions) texts() (fields []string, again string, err error) {
	for _, given := range o.filters {
		name, value, _ := strings.Cut(given, "=")
		text, err := fieldText("--filter: "+name, name, value)
		if err != nil {
			return nil, "", err
		}
		if isTime(name) && text != value {
			again += "--filter " + name + "=" + text + " "
		}
		if text != value {
			given = name + "=" + text
		}
		fields = append(fields, given)
	}
	return fields, again, nil
}

// meantField names the field, or the value of one, that the first wrong one of a filter may have been meant for; "" =
// none.
func meantField(filters []string) string {
	names, _ := task.FilterFields()
	for _, given := range filters {
		name, value, _ := strings.Cut(given, "=")
		if !slices.Contains(names, name) {
			return suggest.FlagFor(name, names)
		}
		if new(task.Filter).Set(name, value) != nil {
			return suggest.Value(name, value)
		}
	}
	return ""
}

// operateMany counts the tasks that a filter selects, or changes them.
func (a *app) operateMany(ctx context.Context, client operations.Client, verb operations.Verb, o manyOptions, reason string) error {
	filters, again, err := o.texts()
	if err != nil {
		return err
	}
	f, err := task.ParseFilter(filters)
	if err != nil {
		return &exitcode.UsageError{Problem: "--filter: " + err.Error() + meantField(filters)}
	}
	if o.cursor == "" { // which has the session, which may have ended since
		if f.Node, err = sessionOf(ctx, client, f.Node); err != nil {
			return err
		}
	}
	p := a.print()
	var last bulk.Report
	var waits string
	for r, failed := range client.Each(ctx, f, operations.OfMany[verb], bulk.Options{Cursor: o.cursor, Reason: reason, DryRun: !o.yes}) {
		last, err = r, failed
		if o.yes && p.IsJSON() {
			if err := p.Row(r); err != nil {
				return err
			}
		} else if o.yes && r.Cursor != "" && r.Matched > 0 && exitcode.Of(failed) != exitcode.Usage {
			const say = "%d tasks, %d changed; if this is interrupted, go on with %s--cursor %s\n"
			fmt.Fprintf(a.Err, say, r.Matched, r.Changed, again, r.Cursor)
		}
		if silent := silentShards(r.Missing); silent != waits {
			if waits = silent; waits != "" {
				fmt.Fprintf(a.Err, "waiting for the shards %s: nobody answers\n", waits)
			}
		}
	}
	if err != nil && last.Matched == 0 {
		return err
	}
	if o.yes && last.Left > 0 {
		fmt.Fprintf(a.Err, "%d tasks are left as they are: %s\n", last.Left, whyLeft(verb))
	}
	if len(last.Problems) > 0 {
		err = errors.Join(err, &requests.Problems{Text: fmt.Sprintf("%d tasks were refused and %d failed", last.Refused, last.Failed), Errs: last.Problems})
	}
	return errors.Join(err, a.printMany(verb, o, last))
}

// whyLeft says of which tasks a verb does nothing.
func whyLeft(verb operations.Verb) string {
	if verb == operations.Cancel {
		return "since it began they were created, have ended or were cancelled, match no more, or had another event at every try"
	}
	return "they have made an event since it began; begin anew for those that still match"
}

// printMany prints the selected tasks, or with --yes the counts of the results.
func (a *app) printMany(verb operations.Verb, o manyOptions, r bulk.Report) error {
	if !o.yes {
		p := a.print("BEHAVIOR", "STATUS", "SUBSTATUS", "TASKS")
		for _, row := range r.Rows {
			if err := p.Row(row, row.Behavior, row.Status, row.Substatus, row.Tasks); err != nil {
				return err
			}
		}
		fmt.Fprintf(a.Err, "%d tasks match; --yes does %s\n", r.Matched-r.Left, verb)
		return p.Flush()
	}
	p := a.print("MATCHED", "CHANGED", "REFUSED", "LEFT", "GONE", "FAILED")
	if p.IsJSON() {
		return nil
	}
	return errors.Join(p.Row(nil, r.Matched, r.Changed, r.Refused, r.Left, r.Gone, r.Failed), p.Flush())
}
