package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/flags"
	"taskledger/ledger/repair"
)

func (a *app) repairCommand() *cobra.Command {
	var o repair.Options
	c := &cobra.Command{
		Use:   "repair",
		Short: "Show keys that are not where they belong, and with --yes remove those that may be removed",
		Long: `Repair looks behind the last sound entry of every shard. A key there that holds no entry of the shard
keeps the shard from being served. Without --yes repair only shows such keys; with --yes it removes them, and the
shard is served again within seconds. A committed last entry whose stored bytes have rotted since looks the same where
no snapshot covers it: --yes removes it, too, and what it recorded is lost, which the shard then tells in its history.
REMEDY says of each key "remove", "removed", or why removing it could lose something. Of what is damaged otherwise
verify names shard, entry and kind.

Keys of shards that the cluster does not have, and node keys without a lease, are ignored by every node, and shown
here; with --yes the latter are removed.

Run it with --restored once after etcd was restored from a backup, best before nodes start: what the journals have
lost by that is given up, of each shard that no node serves, and of each whose snapshots or archive go beyond the end
of its journal. The latter are quarantined until then. The next node that serves such a shard records the loss, uses
no id of an item again that was lost with it, and archives on, also where the archive had lost its end and no longer
reaches what the journal begins with. The logs of the tasks of such a shard are removed: its next tasks get the
numbers by which they are kept. Nothing is given up of a shard that nodes have served since and that shows no loss.

Exit code 1 means that something is left to do. Keys that are ignored do not count.`,
		Args: flags.NoArguments,
	}
	c.Flags().BoolVar(&o.Remove, "yes", false, "remove what can be removed without loss")
	c.Flags().BoolVar(&o.Restored, "restored", false, "give up what the journals have lost because etcd was restored from a backup")
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, _ []string) error {
		strays, err := client.Repair(ctx, o)
		return cmp.Or(err, a.showStrays(strays))
	})
}

// showStrays prints keys. Its error says what is left to do; keys of no shard that cannot be removed are ignored by
// every node.
func (a *app) showStrays(strays []repair.Stray) (err error) {
	p := a.print("SHARD", "KEY", "REVISION", "BYTES", "PROBLEM", "REMEDY")
	left, removable := 0, 0
	for _, s := range strays {
		shard, what := fmt.Sprint(s.Shard), cmp.Or(s.Keep, "remove")
		if s.Shard < 0 {
			shard = "-"
		}
		switch {
		case s.Removed:
			what = "removed"
		case s.GivenUp:
			what = "given up: the next owner records it"
		case s.Keep == "":
			removable++
		case s.Shard >= 0:
			left++
		}
		if err := p.Row(s, shard, cmp.Or(s.Key, "-"), s.Revision, s.Bytes, s.Problem, what); err != nil {
			return err
		}
	}
	switch {
	case removable > 0:
		err = a.canBeRemoved(removable)
	case left > 0:
		err = fmt.Errorf("%d keys or journals are left as they are: REMEDY says why", left)
	}
	return errors.Join(err, p.Flush())
}

// canBeRemoved names the command that removes the keys from the same cluster.
func (a *app) canBeRemoved(keys int) error {
	return fmt.Errorf("%d keys can be removed: %s", keys, a.command(append([]string{"repair", "--yes"}, a.access.given("data")...)...))
}
