package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/signing"
	"taskledger/events"
	"taskledger/ledger"
)

func (a *app) exportCommand() *cobra.Command {
	var task, key, out string
	var kept verifyFlags
	var shard int
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the history of a task, or a whole shard, to a file that verify checks anywhere",
		Long: `Export writes one JSON object a line: of a shard, all its entries; of a task, its events with what proves their place in
the hash chain of their shard. Of other tasks a task's export holds digests only. With --signing-key the file ends with a signed
checkpoint of its last entry. That signature is the word of whoever exports, today: only a checkpoint that somebody kept shows that
nothing before it was changed since. Without either, the name of the cluster in the first line is a mere claim. With --checkpoint a
task's export goes on, by digests, to the entry that the note names, so that verify FILE --checkpoint holds it against the note.`,
		Args: flags.NoArguments,
	}
	c.Flags().StringVar(&task, "task", "", "`id` of the task")
	c.Flags().IntVar(&shard, "shard", 0, "`number` of the shard")
	c.Flags().StringVar(&key, "signing-key", "", "`file` of the private key to sign with")
	c.Flags().StringVar(&out, "out", "", "`file` to write, which must not exist (default: standard output)")
	flags.ListVar(c.Flags(), &kept.checkpoints, "checkpoint", "`files` of checkpoints that were kept, up to which the export of a task goes on")
	c.MarkFlagsMutuallyExclusive("task", "shard")
	c.MarkFlagsMutuallyExclusive("checkpoint", "shard")
	a.completeFlag(c, "task", a.completeTasks)
	a.completeFlag(c, "shard", a.completeShards)
	return a.readerCommand(c, always, func(ctx context.Context, client reader, _ []string) error {
		if task == "" && !c.Flags().Changed("shard") {
			return &exitcode.UsageError{Problem: "export: want --task ID, or --shard NUMBER"}
		}
		sign, err := signer(key)
		if err != nil {
			return err
		}
		upTo, err := a.kept(kept)
		if err != nil {
			return err
		}
		return a.writeTo(out, func(w io.Writer) error {
			if task != "" {
				return client.Ledger().ExportTask(ctx, events.TaskID(task), w, sign, upTo...)
			}
			return client.Ledger().ExportShard(ctx, shard, w, sign)
		})
	})
}

// signer reads the keys in a file. It returns nil without a file.
func signer(file string) (ledger.Signer, error) {
	if file == "" {
		return nil, nil
	}
	sign, err := signing.Signer(file)
	if err != nil {
		return nil, &exitcode.UsageError{Problem: "--signing-key: " + err.Error()}
	}
	return sign, nil
}

// writeTo writes to a new file, which it removes again after an error, or to the output.
func (a *app) writeTo(file string, write func(io.Writer) error) error {
	if file == "" {
		w := bufio.NewWriter(a.Out)
		return errors.Join(write(w), w.Flush())
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &exitcode.UsageError{Problem: fmt.Sprintf("--out: %v", err)}
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(write(w), w.Flush(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}
