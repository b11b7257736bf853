package cli

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/api/view"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/suggest"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/task"
)

func (a *app) replayCommand() *cobra.Command {
	var since, until, after, id, status, record string
	var o ledger.ReplayOptions
	c := &cobra.Command{
		Use:   "replay",
		Short: "Print the events of the whole cluster in order, one JSON object a line",
		Long: `Replay prints what was committed before it began, in the order of the commits, from the archive where the journal was
trimmed. Flags select events; --behavior and --status need the states of all tasks, and read from the beginning.`,
		Args: flags.NoArguments,
	}
	c.Flags().StringVar(&since, "since", "",
		"only events of this `time` and later, such as 2026-11-21T12:00:00Z, or 10m: so long ago; it does not\n"+
			"count for shards that --after names")
	c.Flags().StringVar(&until, "until", "", "only events of this `time` and earlier")
	c.Flags().StringVar(&after, "after", "",
		"`positions` as history shows them, with commas, one for each shard: of that shard only events after it")
	c.Flags().StringVar(&id, "task", "",
		"only events of the task with this `id`, or of the item store:NAME/ID, by the id that it was added with")
	c.Flags().StringVar(&o.Behavior, "behavior", "", "only events of tasks of this behavior")
	c.Flags().StringVar(&status, "status", "",
		"only events after which the task is CREATED, RUNNING, SUCCESS or FAILURE")
	c.Flags().StringVar(&record, "record", "", "only events of this record: "+strings.Join(records(), ", "))
	a.completeFlag(c, "task", a.completeTasks)
	a.completeFlag(c, "behavior", a.completeBehaviors)
	a.completeFlag(c, "record", words(records()...))
	a.completeFlag(c, "status", words(suggest.StatusNames()...))
	return a.readerCommand(c, always, func(ctx context.Context, client reader, _ []string) (err error) {
		if o.From, err = flags.Time("--since", since, flags.Ago); err != nil {
			return err
		}
		if o.To, err = flags.Time("--until", until, flags.Ago); err != nil {
			return err
		}
		if until != "" {
			o.To = o.To.Add(time.Millisecond) // which is the first time that is left out
		}
		if since != "" && until != "" && !o.From.Before(o.To) {
			const say = "--since %s: want a time that is not after that of --until, %s"
			return &exitcode.UsageError{Problem: fmt.Sprintf(say, since, until)}
		}
		if o.After, err = ledger.ParsePositions("--after", after); err != nil {
			return &exitcode.UsageError{Problem: err.Error()}
		}
		if o.Task = events.TaskID(id); id != "" && o.Task.Validate() != nil {
			return &exitcode.UsageError{Problem: "--task: " + o.Task.Validate().Error()}
		}
		if status != "" {
			if o.Status, err = task.ParseStatus(strings.ToUpper(status)); err != nil {
				return &exitcode.UsageError{Problem: "--" + err.Error() + suggest.Value("status", status)}
			}
		}
		if record != "" {
			if o.Records, err = recordNamed(record); err != nil {
				return err
			}
			if of := o.Records[0]; of != events.OfTask && (id != "" && of != events.OfItem || o.Behavior != "" || status != "") {
				return &exitcode.UsageError{Problem: "--record " + record + " selects events of no task: leave out --behavior and --status, and --task unless the record is item"}
			}
		}
		return a.replay(ctx, client, o)
	})
}

func records() (names []string) {
	for _, of := range events.Records() {
		names = append(names, of.String())
	}
	return names
}

// recordNamed reads a value of --record.
func recordNamed(name string) ([]events.Record, error) {
	if i := slices.Index(records(), name); i >= 0 {
		return events.Records()[i : i+1], nil
	}
	return nil, &exitcode.UsageError{Problem: fmt.Sprintf("--record %q: want %s", name, strings.Join(records(), ", "))}
}

func (a *app) replay(ctx context.Context, client operations.Historian, o ledger.ReplayOptions) error {
	show, shown := a.shower(), false
	for ev, err := range client.Ledger().Replay(ctx, o) {
		if err == nil {
			shown, err = true, show(ev)
		}
		if err != nil {
			return err
		}
	}
	switch alone := (ledger.ReplayOptions{Task: o.Task}); {
	case shown:
	case o.Task != "" && reflect.DeepEqual(o, alone):
		return fmt.Errorf("replay of %s: %w", o.Task, task.ErrNotFound)
	case o.Task != "":
		fmt.Fprintf(a.Err, "%s: no such event of task %s\n", a.Name, o.Task)
	default:
		fmt.Fprintf(a.Err, "%s: no such event\n", a.Name)
	}
	return nil
}

// shower returns what prints events, one JSON object a line.
func (a *app) shower() func(ledger.Event) error {
	p := output.New(a.Out, true)
	return func(ev ledger.Event) error {
		return p.Row(view.OfEvent(ev))
	}
}
