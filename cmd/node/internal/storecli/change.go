package storecli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/api/shape"
	"taskledger/api/stores/form"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/input"
	"taskledger/cmd/node/internal/output"
	"taskledger/item"
)

// maxUpdate takes the largest update, as the HTTP API does.
const maxUpdate = 2 << 20

// ageIs is the help of --age.
const ageIs = "for a repetition: how long ago --key was first sent; a request that may be forgotten by then is\n" +
	"refused, and not done again"

func (t *Terminal) update() *cobra.Command {
	var file, key string
	var age time.Duration
	c := &cobra.Command{
		Use:   "update [REQUEST]",
		Short: "Add, change and delete tasks: all of it, or nothing",
		Long: `Update does all that REQUEST says, or nothing, and prints the tasks that it makes. REQUEST is the JSON object of the HTTP API:
adds, updates, deletes and depends, as in {"adds":[{"group":"map","data":"x"}],"deletes":[7]}. A clientid in it wins over --client-id.`,
		Args: flags.Arguments,
	}
	c.Flags().StringVar(&file, "file", "", "`file` with the request instead, - for standard input")
	c.Flags().StringVar(&key, "key", "", "`text` that makes a repetition of the request the same request, for an hour")
	c.Flags().DurationVar(&age, "age", 0, ageIs)
	return t.Ask(t.changes(c), never, func(ctx context.Context, client operations.Stores, args []string) error {
		var text []byte
		switch {
		case (len(args) == 0) == (file == ""):
			return &exitcode.UsageError{Problem: "want REQUEST or --file, one of them"}
		case file != "":
			var err error
			if text, err = input.Read(ctx, "request", file, t.In, maxUpdate); err != nil {
				return err
			}
		default:
			text = []byte(args[0])
		}
		u, err := t.request(c, text)
		if err != nil {
			return err
		}
		u.Key, u.Age = key, age
		made, err := client.Update(ctx, t.store, u)
		if err != nil {
			return err
		}
		p := t.tasks()
		ids := make([]string, len(made))
		for i := range made {
			ids[i] = strconv.FormatInt(made[i].ID, 10)
			is := form.TaskOf(&made[i])
			if at := i - len(u.Adds); at >= 0 && u.Changes[at].Keep {
				is = form.Kept(&made[i])
			}
			err = errors.Join(err, row(p, is))
		}
		return exitcode.Unprinted("updated: "+strings.Join(ids, " "), errors.Join(err, p.Flush()))
	})
}

// request reads an update.
func (t *Terminal) request(c *cobra.Command, text []byte) (*item.Update, error) {
	if err := form.Few(text); err != nil {
		return nil, err
	}
	var u form.Update
	if err := shape.Decode(text, &u); err != nil {
		return nil, &exitcode.UsageError{Problem: "request: " + err.Error()}
	}
	if u.ClientID == 0 {
		u.ClientID = t.clientID(c)
	}
	return u.Request()
}

func (t *Terminal) claim() *cobra.Command {
	var duration, wait time.Duration
	var age time.Duration
	var depends []int64
	var key string
	c := &cobra.Command{
		Use:   "claim GROUP",
		Short: "Claim a task of a group for a time",
		Long: `Claim makes one of the oldest available tasks of a group the caller's for a time, and prints it under
its new id. It prints nothing where no task is available.`,
		Args: flags.Arguments,
	}
	c.Flags().DurationVar(&duration, "duration", item.DefaultDuration, "how long the task is the caller's: 1ms to 24h")
	c.Flags().DurationVar(&wait, "wait-for", 0, "how long to wait for a task, 1m at most; 0s = not at all")
	c.Flags().Int64SliceVar(&depends, "depends", nil, "`ids` of tasks that have to be there")
	c.Flags().Lookup("depends").DefValue = "" // the help would show brackets
	c.Flags().StringVar(&key, "key", "", "`text` that makes a repetition of the claim the same claim, for an hour")
	c.Flags().DurationVar(&age, "age", 0, ageIs)
	return t.Ask(t.changes(c), func() bool { return wait > 0 }, func(ctx context.Context, client operations.Stores, args []string) error {
		it, err := client.Claim(ctx, t.store, &item.Claim{
			Client:   t.clientID(c),
			Key:      key,
			Age:      age,
			Group:    args[0],
			Duration: duration,
			Wait:     wait,
			Depends:  depends,
		})
		if err != nil || it == nil {
			return err
		}
		p := t.tasks()
		return exitcode.Unprinted(fmt.Sprintf("claimed: %d", it.ID), errors.Join(row(p, form.TaskOf(it)), p.Flush()))
	})
}

func (t *Terminal) stats() *cobra.Command {
	c := &cobra.Command{
		Use:   "stats",
		Short: "Count the tasks of every group",
		Long: `Stats counts the tasks of every group: all of them, those that are available, that wait for their time, and that are claimed, or were and
are put off; the bytes of their data, and since when the oldest of the available ones is. The owner of the store tells, which has counted.`,
		Args: flags.NoArguments,
	}
	return t.Ask(t.reads(c), never, func(ctx context.Context, client operations.Stores, _ []string) error {
		groups, err := client.Groups(ctx, t.store, t.linear)
		if err != nil {
			return err
		}
		p := t.Print("GROUP", "TASKS", "AVAILABLE", "WAITING", "CLAIMED", "BYTES", "OLDEST")
		for i := range groups {
			n, oldest := form.GroupOf(&groups[i]), output.Time(groups[i].Oldest)
			err = errors.Join(err, p.Row(n, plain(n.Group), n.Tasks, n.Available, n.Waiting, n.Claimed, n.Bytes, oldest))
		}
		return errors.Join(err, p.Flush())
	})
}
