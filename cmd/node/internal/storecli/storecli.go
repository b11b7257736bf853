// Package storecli is the command store: it reads and changes the tasks of task stores.
package storecli

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/api/stores/form"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/item"
	"taskledger/task"
)

// Terminal connects the commands to the command line.
type Terminal struct {
	In        io.Reader
	Err       io.Writer
	Print     func(columns ...string) *output.Printer
	Principal func() string // who asks
	// Ask makes a command one that asks a cluster. waits says that it may take longer than an answer does.
	Ask func(c *cobra.Command, waits func() bool, run func(ctx context.Context, c operations.Stores, args []string) error) *cobra.Command
	// Find asks a cluster for the words that may follow.
	Find func(
		c *cobra.Command, words func(ctx context.Context, c operations.Stores) []string,
	) ([]string, cobra.ShellCompDirective)

	store  string
	client int64
	linear bool
}

// Command returns the command, with its subcommands.
func (t *Terminal) Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Read and change the tasks of task stores",
		Long: `Store reads and changes task stores: sets of tasks in groups, of which one update adds, changes and deletes many or none, and which
workers claim for a time. Whatever changes a task gives it another id: who was late finds the old one gone.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, sub := range []*cobra.Command{t.groups(), t.get(), t.list(), t.update(), t.claim(), t.stats()} {
		if sub.ValidArgsFunction = cobra.NoFileCompletions; strings.HasSuffix(sub.Use, " GROUP") {
			sub.ValidArgsFunction = t.completeGroups
		}
		c.AddCommand(sub)
	}
	c.PersistentFlags().StringVar(&t.store, "store-name", "default", "`name` of the store")
	return c
}

func never() bool { return false }

// completeGroups completes the name of a group that has tasks.
func (t *Terminal) completeGroups(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return t.Find(c, func(ctx context.Context, client operations.Stores) (names []string) {
		groups, _ := client.Groups(ctx, t.store, false) // whoever completes has nowhere to tell an error
		for _, g := range groups {
			names = append(names, g.Name)
		}
		return names
	})
}

// reads adds the flag of commands that read.
func (t *Terminal) reads(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&t.linear, "linear", false,
		"let the answer hold all that was changed before it, whichever node was asked")
	return c
}

// changes adds the flag of commands that change something.
func (t *Terminal) changes(c *cobra.Command) *cobra.Command {
	c.Flags().Int64Var(&t.client, "client-id", 0,
		"`number` of the client that asks, 1 to 2^53: it alone may change what it has claimed\n"+
			"(default: one for each user and host)")
	return c
}

// clientID is the number of whoever asks: the same whenever the same user asks from here, so that what was claimed can
// be changed later.
func (t *Terminal) clientID(c *cobra.Command) int64 {
	if c.Flags().Changed("client-id") {
		return t.client
	}
	sum := sha256.Sum256([]byte(t.Principal()))
	return 1 + int64(binary.BigEndian.Uint64(sum[:])>>11)
}

func (t *Terminal) groups() *cobra.Command {
	return t.Ask(t.reads(&cobra.Command{Use: "groups", Short: "List the groups that have tasks", Args: flags.NoArguments}), never, func(ctx context.Context, c operations.Stores, _ []string) error {
		groups, err := c.Groups(ctx, t.store, t.linear)
		if err != nil {
			return err
		}
		p := t.Print("GROUP")
		for _, g := range groups {
			err = errors.Join(err, p.Row(struct {
				Group string `json:"group"`
			}{g.Name}, plain(g.Name)))
		}
		return errors.Join(err, p.Flush())
	})
}

func (t *Terminal) get() *cobra.Command {
	c := &cobra.Command{Use: "get ID...", Short: "Show tasks by their ids", Args: flags.Arguments}
	return t.Ask(t.reads(c), never, func(ctx context.Context, c operations.Stores, args []string) error {
		ids := make([]int64, len(args))
		for i, text := range args {
			var err error
			if ids[i], err = number("id", text); err != nil {
				return err
			}
		}
		found, err := c.Items(ctx, t.store, ids, t.linear)
		if err != nil {
			return err
		}
		p := t.tasks()
		for i, it := range found {
			if it == nil {
				err = errors.Join(err, fmt.Errorf("task %d of the store %s: %w", ids[i], t.store, task.ErrNotFound))
			} else {
				err = errors.Join(err, row(p, form.TaskOf(it)))
			}
		}
		return errors.Join(err, p.Flush())
	})
}

// number reads the id of a task of a store; what names the flag or the argument.
func number(what, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > item.MaxNumber {
		return 0, &exitcode.UsageError{Problem: fmt.Sprintf("%s %.32q: want a number of 1 to 2^53", what, text)}
	}
	return n, nil
}

func (t *Terminal) list() *cobra.Command {
	var owned bool
	var limit int
	var cursor string
	c := &cobra.Command{Use: "list GROUP", Short: "List the tasks of a group by id", Args: flags.Arguments}
	c.Flags().BoolVar(&owned, "owned", false, "also tasks that are not available")
	c.Flags().IntVar(&limit, "limit", 100, "most tasks; 0 = all")
	c.Flags().StringVar(&cursor, "cursor", "", "the `id` that an earlier list printed last: go on behind it")
	return t.Ask(t.reads(c), never, func(ctx context.Context, c operations.Stores, args []string) error {
		if limit < 0 {
			return &exitcode.UsageError{Problem: fmt.Sprintf("--limit %d: want 0 or more", limit)}
		}
		var after int64
		if cursor != "" {
			var err error
			if after, err = number("--cursor", cursor); err != nil {
				return err
			}
		}
		p, last := t.tasks(), after
		more, err := each(ctx, c, t.store, item.Page{Group: args[0], After: after, Limit: limit, Owned: owned, Linear: t.linear}, func(it *item.Item) error {
			last = it.ID
			return row(p, form.TaskOf(it))
		})
		err = errors.Join(err, p.Flush())
		if more {
			fmt.Fprintf(t.Err, "there are more: go on with --cursor %d\n", last)
		}
		return err
	})
}

// each calls do for the items of a group, page by page, and reports whether there are more. A limit of 0 is none.
func each(ctx context.Context, c operations.Stores, store string, p item.Page, do func(*item.Item) error) (more bool, err error) {
	for limit := p.Limit; ; {
		items, more, err := c.Group(ctx, store, p)
		if err != nil {
			return false, err
		}
		for i := range items {
			if err := do(&items[i]); err != nil {
				return false, err
			}
			p.After = items[i].ID
		}
		p.Limit -= len(items)
		if !more || len(items) == 0 || limit > 0 && p.Limit <= 0 {
			return more && len(items) > 0, nil
		}
		p.Limit = max(p.Limit, 0)
	}
}

// plain is a name as a table shows it: in quotes, with escapes, where a reader could not copy it, or tell it from
// another.
func plain(name string) string {
	quoted := strconv.Quote(name)
	if quoted != `"`+name+`"` || strings.TrimSpace(name) != name {
		return quoted
	}
	return name
}

// tasks begins a table of tasks.
func (t *Terminal) tasks() *output.Printer {
	return t.Print("ID", "GROUP", "AVAILABLE", "OWNER", "DATA")
}

// maxShown bounds the bytes of data that a table shows.
const maxShown = 60

func row(p *output.Printer, is form.Task) error {
	data := fmt.Sprintf("(%d bytes)", len(is.Data64))
	switch {
	case is.Keep:
		data = "(kept)"
	case is.Data != nil:
		if data = *is.Data; len(data) > maxShown {
			data = fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(data[:maxShown], ""), len(data))
		}
	}
	return p.Row(is, is.ID, plain(is.Group), output.Time(events.Millis(is.Timespec)), is.OwnerID, data)
}
