package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/signing"
	"taskledger/ledger"
)

func (a *app) checkpointCommand() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "checkpoint",
		Short: "Print a note of where every shard stands, signed with --signing-key, for an auditor to keep",
		Long: `A checkpoint names the last entry of every shard and its hash, which depends on every byte before. Whoever keeps one can
prove later, with verify --checkpoint, that nothing before it was changed, not even by somebody who may write everything. It carries a
digest of each shard's state, too, so that a state whose entries were dropped since is proved as well. What comes after it can be
replaced unnoticed until the next one is kept: take one as often as that matters. It is the word of the owners and does not read the
journal, which verify does: an entry whose bytes have rotted since is named there. Each owner decides nothing while it computes the digest,
for one to three microseconds a task.
--signing-key signs it with every private key in the file, one a line; without, it is not signed, and proves only to who kept it. With -o json the
text to keep is the field note.`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&key, "signing-key", "", "`file` of the private keys to sign with")
	c.AddCommand(a.newKeyCommand())
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, _ []string) error {
		sign, err := signer(key)
		if err != nil {
			return err
		}
		p, err := client.Ledger().Checkpoint(ctx)
		if err != nil {
			return err
		}
		text := p.String()
		if sign != nil {
			if text, err = sign(text); err != nil {
				return err
			}
		}
		if a.output == "json" {
			return a.print().Row(struct {
				Cluster string                  `json:"cluster"`
				Heads   []ledger.CheckpointHead `json:"heads"`
				Time    time.Time               `json:"time"`
				Note    string                  `json:"note"`
			}{p.Cluster, p.Heads, p.Time, text})
		}
		_, err = io.WriteString(a.Out, text)
		return err
	})
}

func (a *app) newKeyCommand() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "new-key FILE",
		Short: "Make a private key in a new file and print the public one",
		Long: `To change keys, append the line of the new private key to the old one's file: checkpoints then carry both signatures, and
auditors can trust the new public key before the old one goes.`,
		Args: flags.Arguments,
		RunE: func(_ *cobra.Command, args []string) error {
			public, err := signing.NewKey(args[0], name)
			if err != nil {
				return &exitcode.UsageError{Problem: err.Error()}
			}
			_, err = fmt.Fprintln(a.Out, public)
			return err
		},
	}
	c.Flags().StringVar(&name, "name", "taskledger", "who signs, without blanks and plus signs")
	return c
}
