package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/rows"
	"taskledger/events"
	"taskledger/ledger"
)

func (a *app) historyCommand() *cobra.Command {
	o := ledger.HistoryOptions{Limit: ledger.MaxHistoryPage}
	c := &cobra.Command{
		Use:   "history ID",
		Short: "Show what happened to a task: the events of its present or last life",
		Long: `History reads the journal, and the archive where the journal was trimmed. A task that was deleted, or forgotten some time
after its end, still has one. Where --limit leaves something out, the cursor that shows what follows is printed to standard error.
The columns of a table are aligned for a thousand events at a time.`,
		Args:              flags.Arguments,
		ValidArgsFunction: a.completeTasks,
	}
	c.Flags().IntVar(&o.Total, "limit", 0, "most events to show; 0 shows all")
	c.Flags().BoolVar(&o.Newest, "newest", false, "newest first")
	c.Flags().StringVar(&o.Cursor, "cursor", "", "go on after an earlier history of the task, in the same order, whose `cursor` this is")
	c.Flags().BoolVar(&o.States, "states", false, "also show the task after each event; oldest first only")
	c.MarkFlagsMutuallyExclusive("newest", "states")
	return a.readerCommand(c, never, func(ctx context.Context, client reader, args []string) error {
		if o.Total < 0 {
			return &exitcode.UsageError{Problem: "--limit: want 1 or more, or 0 for all"}
		}
		return a.history(ctx, client.Ledger(), events.TaskID(args[0]), o)
	})
}

// history prints events, a page at a time.
func (a *app) history(ctx context.Context, l *ledger.Ledger, id events.TaskID, o ledger.HistoryOptions) error {
	p := a.print(rows.EventColumns(o.States)...)
	next := ""
	for page, err := range l.HistoryPages(ctx, id, o) {
		for i := range page.Events {
			if err == nil && o.States {
				err = rows.Moment(p, page.Events[i], page.States[i])
			} else if err == nil {
				err = rows.Event(p, page.Events[i])
			}
		}
		if err == nil {
			err = p.Flush()
		}
		if err != nil {
			return err
		}
		next = page.Next
	}
	if next != "" {
		fmt.Fprintf(a.Err, "%s: more follows: --cursor %s\n", a.Name, next)
	}
	return nil
}
