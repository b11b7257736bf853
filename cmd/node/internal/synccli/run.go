package synccli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/collections"
	"taskledger/schedule"
	"taskledger/task"
)

func (t *Terminal) run() *cobra.Command {
	var key string
	var wait bool
	c := &cobra.Command{
		Use:   "run SOURCE COLLECTION",
		Short: "Bring a collection up to date now; prints the id of the run",
		Long: `Run makes a run now, also of a collection that is paused, before those of ticks, and prints its id:
SOURCE_COLLECTION_UUID. A run that has not ended is shared, unless runs of the collection may overlap.`,
		Args: flags.Arguments,
	}
	c.Flags().StringVar(&key, "key", "", "`text` of up to 239 bytes that makes a repetition share the run of the first")
	c.Flags().BoolVar(&wait, "wait", false, "wait until the run has ended; exit code 1 if it failed")
	waits := func() bool { return wait }
	return t.Ask(c, waits, func(ctx context.Context, client *Client, args []string) error {
		all := client.Schedules
		s, err := find(ctx, all, args[0], args[1])
		if err != nil {
			return err
		}
		by := schedule.ByHand{Key: key, Priority: collections.AskedPriority}
		run, err := all.RunWith(ctx, s.Name, by, s.Version)
		if errors.Is(err, task.ErrUnknown) && key != "" {
			return fmt.Errorf("%w; to be sure, run it again with the same --key", err)
		}
		if err != nil {
			return err
		}
		is := struct {
			ID     string `json:"task_id"`
			Joined bool   `json:"joined"`
		}{shownID(run.ID()), run.Joined()}
		p := t.Print()
		if err := errors.Join(p.Row(is, is.ID), p.Flush()); err != nil {
			return exitcode.Unprinted("accepted: "+is.ID, err)
		}
		if is.Joined && !p.IsJSON() {
			fmt.Fprintf(t.Err, "there was this run already, and it is shared\n")
		}
		if !wait {
			run.Close()
			return nil
		}
		return t.Await(ctx, client, shown{run})
	})
}

// verb explains a verb in the help.
type verb struct {
	verb        operations.ScheduleVerb
	short, long string
}

var (
	pause = verb{
		verb:  operations.PauseSchedule,
		short: "Keep a collection from having runs at its times",
		long: "Times that fall into the pause have no runs. A run under way goes on, sync run makes others, and sync apply\n" +
			"keeps the pause.",
	}
	resume = verb{
		verb:  operations.ResumeSchedule,
		short: "End the pause of a collection",
		long:  "Times that fell into the pause have no runs.",
	}
)

func (t *Terminal) steer(v verb) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   string(v.verb) + " SOURCE COLLECTION",
		Short: v.short,
		Long:  v.short + ".\n\n" + v.long,
		Args:  flags.Arguments,
	}
	if v.verb == pause.verb {
		c.Flags().StringVar(&reason, "reason", "", "why, for the history; 256 bytes at most")
	}
	return t.Ask(c, never, func(ctx context.Context, client *Client, args []string) error {
		all := client.Schedules
		s, err := find(ctx, all, args[0], args[1])
		if err != nil {
			return err
		}
		if err := all.Steer(ctx, v.verb, s.Name, reason, s.Version); err != nil {
			return err
		}
		switch {
		case v.verb == pause.verb && s.Paused != nil:
			fmt.Fprintf(t.Err, "collection %s was paused already; the reason stays\n", s.Name)
		case v.verb == resume.verb && s.Paused == nil:
			fmt.Fprintf(t.Err, "collection %s was not paused\n", s.Name)
		}
		return nil
	})
}
