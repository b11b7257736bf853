package schedulecli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/task"
)

// shownTicks is the number of ticks that set shows.
const shownTicks = 3

func (t *Terminal) set() *cobra.Command {
	var says definition
	var seen uint64
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Make a schedule, or change it",
		Long: `Set makes the schedule, or changes it to exactly what the flags say: a flag that is left out stands for its
default, not for what the schedule has. It prints made, changed or unchanged, when the schedule fires in words, and its
next ticks. Ticks, pauses and backfills leave the version as it is. Without --cron the schedule never fires by itself,
and runs when run asks for it.`,
		Args: flags.Arguments,
	}
	says.flags(c)
	c.Flags().Uint64Var(&seen, "if-version", 0,
		"`version` that get has shown: refuse to change any other (default: any)")
	return t.Ask(c, func(ctx context.Context, client Client, args []string) error {
		d, err := says.read(ctx, c, t.In)
		if err != nil {
			return err
		}
		var behavior events.Policy
		plan, err := d.Plan(behavior) // a node completes it when the schedule is set
		if err != nil {
			return err
		}
		is := change{Name: args[0]}
		if is.preview, err = previewOf(&plan, events.MillisOf(t.Now()), shownTicks); err != nil {
			return err
		}
		if err := is.apply(ctx, client.Schedules(), d, schedule.Version(seen)); err != nil {
			return err
		}
		is.warn(t.Err)
		return exitcode.Unprinted(is.Outcome+": "+is.Name, is.print(t))
	})
}

// change tells what became of a set.
type change struct {
	Name    string           `json:"name"`
	Outcome string           `json:"outcome"` // made, changed or unchanged
	Version schedule.Version `json:"version"`
	preview
}

// apply sets the schedule.
func (is *change) apply(
	ctx context.Context, all operations.Schedules, d schedule.Definition, seen schedule.Version,
) (err error) {
	is.Outcome = "changed"
	if _, err := all.Get(ctx, is.Name); errors.Is(err, schedule.ErrNotFound) {
		is.Outcome = "made"
	} else if err != nil {
		return err
	}
	var changed bool
	is.Version, changed, err = all.SetWith(ctx, is.Name, d, schedule.Setting{Seen: seen})
	if err == nil && !changed {
		is.Outcome = "unchanged"
	}
	return err
}

func (is *change) print(t *Terminal) error {
	p := t.Print()
	if p.IsJSON() {
		return p.Row(is)
	}
	err := table(p, [][]any{{is.Outcome, is.Name}, {"version", is.Version}})
	return errors.Join(err, is.rows(p), p.Flush())
}

func (t *Terminal) run() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "run NAME",
		Short: "Make a run now; prints its id",
		Long: `Run makes a run now, also of a paused schedule, and prints its id, for which wait waits. Unless the schedule
allows overlaps, a run that has not ended is shared.`,
		Args: flags.Arguments,
	}
	c.Flags().StringVar(&key, "key", "", "`text` of up to 239 bytes that makes a repetition share the run of the first")
	return t.Ask(c, func(ctx context.Context, client Client, args []string) error {
		handle, err := client.Schedules().RunWith(ctx, args[0], schedule.ByHand{Key: key}, 0)
		if errors.Is(err, task.ErrUnknown) && key != "" {
			return fmt.Errorf("%w; to be sure, run it again with the same --key", err)
		}
		if err != nil {
			return err
		}
		is := struct {
			ID     events.TaskID `json:"id"`
			Joined bool          `json:"joined"`
		}{handle.ID(), handle.Joined()}
		p := t.Print()
		if err := errors.Join(p.Row(is, is.ID), p.Flush()); err != nil {
			return exitcode.Unprinted("accepted: "+string(is.ID), err)
		}
		if is.Joined && !p.IsJSON() {
			fmt.Fprintf(t.Err, "there was this run already, and it is shared\n")
		}
		return nil
	})
}

func (t *Terminal) backfill() *cobra.Command {
	c := &cobra.Command{
		Use:   "backfill NAME FROM TO",
		Short: "Give ticks of the past runs; prints how many",
		Long: `Backfill gives the ticks from one time to another, both inclusive, runs of their own, the oldest first, one at
a time, whether these ticks had runs or not: 1,000 at most. Times are such as 2026-11-21T18:00:00Z, or durations
such as 48h, so long ago.`,
		Args: flags.Arguments,
	}
	return t.Ask(c, func(ctx context.Context, client Client, args []string) error {
		from, err := flags.Time("FROM", args[1], flags.Ago)
		if err != nil {
			return err
		}
		to, err := flags.Time("TO", args[2], flags.Ago)
		if err != nil {
			return err
		}
		ticks, err := client.Backfills().Backfill(ctx, args[0], from, to, 0)
		if err != nil {
			return err
		}
		p := t.Print()
		err = p.Row(struct {
			Ticks int `json:"ticks"`
		}{ticks}, "ticks", ticks)
		return exitcode.Unprinted(fmt.Sprintf("begun: a backfill of %d ticks", ticks), errors.Join(err, p.Flush()))
	})
}

// verb explains a verb in the help.
type verb struct {
	verb        operations.ScheduleVerb
	short, long string
	why         bool // it takes a reason
}

var verbs = [...]verb{
	{
		verb:  operations.PauseSchedule,
		short: "Keep a schedule from deciding ticks",
		long:  "Ticks that fall into the pause have no runs. Runs by hand and backfills go on.",
		why:   true,
	},
	{
		verb:  operations.ResumeSchedule,
		short: "End the pause of a schedule",
		long:  "Ticks that fell into the pause have no runs.",
	},
	{
		verb:  operations.DeleteSchedule,
		short: "End a schedule",
		long:  "Its runs go on, and its history stays.",
	},
	{
		verb:  operations.EndBackfill,
		short: "End a backfill",
		long:  "No further tick of it has a run. One that runs goes on.",
		why:   true,
	},
}

func (t *Terminal) steer(v verb) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   string(v.verb) + " NAME",
		Short: v.short,
		Long:  v.short + ".\n\n" + v.long,
		Args:  flags.Arguments,
	}
	if v.why {
		c.Flags().StringVar(&reason, "reason", "", "why, for the history; 256 bytes at most")
	}
	return t.Ask(c, func(ctx context.Context, client Client, args []string) error {
		all, name := client.Schedules(), args[0]
		was, unseen := all.Get(ctx, name)
		if err := all.Steer(ctx, v.verb, name, reason, 0); err != nil {
			return err
		}
		switch {
		case unseen != nil:
		case v.verb == operations.PauseSchedule && was.Paused != nil:
			fmt.Fprintf(t.Err, "schedule %s was paused already; the reason stays\n", name)
		case v.verb == operations.ResumeSchedule && was.Paused == nil:
			fmt.Fprintf(t.Err, "schedule %s was not paused\n", name)
		}
		return nil
	})
}
