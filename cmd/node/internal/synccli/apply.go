package synccli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/collections"
	"taskledger/collections/apply"
	"taskledger/events"
	"taskledger/schedule"
)

const (
	// applyWithin bounds an apply where --timeout does not: a file of 10,000 collections takes a minute.
	applyWithin = 10 * time.Minute
	// maxShown bounds the bytes of a value in a table.
	maxShown = 60
)

func (t *Terminal) apply() *cobra.Command {
	c := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make the collections those of a file; - is standard input",
		Long: `Apply checks the file, shows the difference to the collections of the cluster, and makes them what the
file says. The file is the whole truth: a collection that is not in it is removed, while its runs and its history stay.
What is as it should be is not touched, so the same file twice changes nothing. An apply that was interrupted is done
again.

Nothing is changed by a file with a mistake (exit code 2), and by one that asks for a program, a driver, a directory or
a time zone that no node has (5); what some nodes lack is a warning. Without --timeout it takes 10 minutes at most.`,
		Args: flags.Arguments,
	}
	return t.askOf(c, always, func(ctx context.Context, client *Client, file *apply.File) error {
		ctx, stop := context.WithTimeoutCause(ctx, applyWithin, exitcode.ErrTimeout)
		defer stop()
		a := t.applier(client)
		compared, p, err := t.compare(ctx, a, file)
		if err != nil {
			return err
		}
		done, err := a.Apply(ctx, compared)
		if err != nil {
			return errors.Join(err, partly(&done))
		}
		return exitcode.Unprinted(summary(&done), told(p, compared, &done))
	})
}

func (t *Terminal) diff() *cobra.Command {
	var code bool
	c := &cobra.Command{
		Use:   "diff FILE",
		Short: "Show what apply would change; - is standard input",
		Args:  flags.Arguments,
	}
	c.Flags().BoolVar(&code, "exit-code", false, "end with exit code 1 where there is a difference")
	return t.askOf(c, never, func(ctx context.Context, client *Client, file *apply.File) error {
		compared, _, err := t.compare(ctx, t.applier(client), file)
		if err != nil {
			return err
		}
		n := compared.Counts()
		differ := n[collections.Added] + n[collections.Changed] + n[collections.Removed]
		switch {
		case differ == 0:
			fmt.Fprintf(t.Err, "no difference: the cluster has the %d collections of the file\n", n[collections.Same])
		case code:
			return fmt.Errorf("%d collections differ", differ)
		}
		return nil
	})
}

func (t *Terminal) applier(client *Client) *apply.Applier {
	return &apply.Applier{
		Schedules: schedules{client.Schedules},
		Nodes:     client.Nodes,
		Shards:    client.Shards,
		Stores:    client.Stores,
		By:        t.Principal(),
	}
}

// schedules implements apply.Schedules.
type schedules struct{ operations.Schedules }

// Delete implements apply.Schedules.
func (s schedules) Delete(ctx context.Context, name string, seen schedule.Version) error {
	return s.Steer(ctx, operations.DeleteSchedule, name, "", seen)
}

// compare compares a file, and prints warnings and the difference.
func (t *Terminal) compare(
	ctx context.Context, a *apply.Applier, file *apply.File,
) (*apply.Comparison, *output.Printer, error) {
	compared, err := a.Compare(ctx, *file)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range compared.Warnings {
		fmt.Fprintf(t.Err, "warning: %s\n", output.Clean(w))
	}
	p := t.Print()
	err = differences(p, compared.Changes)
	return compared, p, errors.Join(err, p.Flush())
}

// difference is a change as JSON shows it.
type difference struct {
	ID     string           `json:"id"`
	Change collections.What `json:"change"`
	Fields []field          `json:"fields,omitempty"`
}

type field struct {
	Field string `json:"field"`
	Was   string `json:"was"`
	Want  string `json:"want"`
}

// differences prints what is not as it should be, a row each, and in a table one for each field.
func differences(p *output.Printer, all []collections.Change) (err error) {
	for i := range all {
		change := &all[i]
		if change.What == collections.Same {
			continue
		}
		is := difference{ID: change.ID, Change: change.What}
		for _, f := range change.Fields {
			is.Fields = append(is.Fields, field(f))
		}
		if p.IsJSON() || len(is.Fields) == 0 {
			err = errors.Join(err, p.Row(is, change.What, change.ID))
			continue
		}
		for _, f := range is.Fields {
			err = errors.Join(err, p.Row(is, change.What, change.ID, f.Field+":", brief(f.Was)+" -> "+brief(f.Want)))
		}
	}
	return err
}

// brief shortens a value for a table.
func brief(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return events.Head(text, maxShown) + fmt.Sprintf("... (%d bytes)", len(text))
}

// outcome says what apply did, as JSON shows it.
type outcome struct {
	Added    int    `json:"added"`
	Changed  int    `json:"changed"`
	Removed  int    `json:"removed"`
	Same     int    `json:"same"`
	Hash     string `json:"hash"` // SHA-256 of the file
	Recorded bool   `json:"recorded"`
}

// told prints what was done.
func told(p *output.Printer, c *apply.Comparison, done *apply.Done) error {
	n := done.Counts()
	is := outcome{
		Added:    n[collections.Added],
		Changed:  n[collections.Changed],
		Removed:  n[collections.Removed],
		Same:     n[collections.Same],
		Hash:     c.File.Hash,
		Recorded: done.Recorded,
	}
	return cmp.Or(p.Row(is, summary(done)), p.Flush())
}

// summary says in words what was done.
func summary(done *apply.Done) string {
	n := done.Counts()
	added, changed, removed := n[collections.Added], n[collections.Changed], n[collections.Removed]
	same := n[collections.Same]
	if added+changed+removed == 0 {
		return fmt.Sprintf("nothing changed: all %d collections are as the file says", same)
	}
	return fmt.Sprintf("applied: %d added, %d changed, %d removed, %d as they were", added, changed, removed, same)
}

// partly returns an error that says what was done before another one; nil = nothing was.
func partly(done *apply.Done) error {
	n := done.Counts()
	added, changed, removed := n[collections.Added], n[collections.Changed], n[collections.Removed]
	if added+changed+removed == 0 {
		return nil
	}
	const text = "a part was applied: %d added, %d changed, %d removed; apply the file again"
	return fmt.Errorf(text, added, changed, removed)
}
