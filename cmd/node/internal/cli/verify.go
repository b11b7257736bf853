package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/checkpoints"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/infiles"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/progress"
	"taskledger/ledger"
)

// totalWithin bounds the wait for totals that only the progress bar shows: a damaged shard has no owner to answer.
const totalWithin = time.Second

// verifyFlags say what else to check.
type verifyFlags struct {
	archive     bool
	show        bool // of a file: its events
	checkpoints []string
	trust       []string
}

func (a *app) verifyCommand() *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Check the whole ledger and what the owners serve, or an export",
		Long: `Verify reads every entry of every shard, from the archive where the journal was trimmed, and checks
that none is missing, that each continues the hash chain, that every transition is legal, and that the snapshots and
what the shard's owner serves equal the fold of the entries. A shard that changes meanwhile may count as not compared,
which is no fault. What it finds is named: the shard, the entry and the kind of damage. Exit code 1 means that
something was found.

A chain that was recomputed from a forged entry on is whole in itself. Only a checkpoint that somebody kept shows the
forgery: --checkpoint compares with it, and also checks the archive, as --with-archive does, unless the cluster drops
entries. PROVED TO is the last entry of a shard up to which it proves that nothing was changed; what it cannot prove
is said on standard error. Where no owner answers and the first entries are in neither journal nor archive, nobody
tells whether they were dropped or removed: exit code 1.

Of a store in files it reads the files where no node runs; there is then no owner to compare with. With a FILE that
export wrote it checks that file, and needs no cluster. With --show it prints the events of the file up to the first
damage, in the form of replay, and what it found on standard error.`,
		Args: flags.Arguments,
	}
	c.Flags().BoolVar(&f.archive, "with-archive", false,
		"every entry must be in the journal or the archive, and alike where both hold it")
	c.Flags().BoolVar(&f.show, "show", false, "print the events of the file, one JSON object a line")
	flags.ListVar(c.Flags(), &f.checkpoints, "checkpoint", "`files` of checkpoints that were kept")
	flags.ListVar(c.Flags(), &f.trust, "trust", "public `keys`, one of which must have signed each checkpoint, and a file that no checkpoint covers")
	a.readerCommand(c, always, func(ctx context.Context, r reader, _ []string) error { return a.verify(ctx, r, f) })
	cluster := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			if len(f.trust) > 0 && len(f.checkpoints) == 0 {
				return &exitcode.UsageError{Problem: "--trust: no checkpoint is given whose signature it could check; name one with --checkpoint"}
			}
			if f.show {
				return &exitcode.UsageError{Problem: "--show: it is about a file; replay prints the events of a cluster"}
			}
			return cluster(cmd, args)
		}
		if f.archive {
			return &exitcode.UsageError{Problem: "--with-archive: a file has none"}
		}
		return a.verifyFile(args[0], f)
	}
	return c
}

// kept reads the checkpoints and says how far each can be trusted.
func (a *app) kept(f verifyFlags) (all []ledger.Checkpoint, err error) {
	for _, file := range f.checkpoints {
		p, words, err := checkpoints.Read(file, f.trust)
		if err != nil {
			return nil, fmt.Errorf("checkpoint %s: %w", file, err)
		}
		fmt.Fprintf(a.Err, "checkpoint %s: %s\n", file, output.Clean(words))
		all = append(all, p)
	}
	return all, nil
}

func (a *app) verify(ctx context.Context, client reader, f verifyFlags) error {
	against, err := a.kept(f)
	if err != nil {
		return err
	}
	total, done := a.entries(ctx, client), int64(0)
	bar := progress.NewBar(a.Err, "entries")
	found, err := client.Ledger().Verify(ctx, ledger.VerifyOptions{Archive: f.archive, Against: against, Progress: func(shard int, _ uint64) {
		done++
		bar.Show(done, max(total, done), fmt.Sprintf("shard %d", shard))
	}})
	bar.Done()
	if err != nil {
		return err
	}
	columns := []string{"SHARD", "FROM", "ENTRIES", "EVENTS", "TASKS", "COMPARED", "HASH", "PROBLEM"}
	if len(against) > 0 {
		columns = slices.Insert(columns, 3, "PROVED TO")
	}
	p := a.print(columns...)
	damaged, vain, unknown, lost := 0, 0, 0, 0
	entries := uint64(0)
	for _, v := range found {
		if len(v.Losses) > 0 {
			lost++
		}
		entries += v.Entries - min(v.From-1, v.Entries)
		if v.Problem != "" {
			damaged++
		}
		if v.Unknown {
			unknown++
		}
		a.tellLosses(&v)
		cells := []any{v.Shard, v.From, v.Entries, v.Events, v.Tasks, v.Compared, v.Hash.String()[:16], v.Problem}
		if len(against) > 0 {
			cells = slices.Insert(cells, 3, any(v.ProvedTo))
			if v.Unproved != "" {
				fmt.Fprintf(a.Err, "shard %d: not proved: %s\n", v.Shard, output.Clean(v.Unproved))
			}
			if v.Dropped > 0 && v.ProvedTo == 0 {
				vain++
			}
		}
		if err := p.Row(v, cells...); err != nil {
			return err
		}
	}
	if damaged > 0 {
		err = fmt.Errorf("%d of %d shards have problems", damaged, len(found))
	}
	if vain > 0 {
		err = errors.Join(err, fmt.Errorf("of %d shards every entry that a checkpoint names was dropped: nothing is proved of them", vain))
	}
	if files, is := client.(*infiles.Reading); is {
		if unsettled := files.Unsettled(); unsettled != nil {
			err = errors.Join(err, fmt.Errorf("entries that were answered may be missing at the end: %v", unsettled))
		}
	}
	if unknown > 0 {
		err = errors.Join(err, fmt.Errorf("of %d shards no owner answers, and whether their first entries were dropped or removed is not known: "+
			"verify again while nodes serve them, or with --with-archive if the cluster never drops entries", unknown))
	}
	if err = errors.Join(err, p.Flush()); err == nil && !p.IsJSON() {
		before := ""
		if lost > 0 {
			before = fmt.Sprintf("; lost entries before, or given up: in %d of them, as told above", lost)
		}
		_, err = fmt.Fprintf(a.Out, "no problem in %d entries of %d shards%s\n", entries, len(found), before)
	}
	return err
}

// tellLosses says what was given up or lost before, which is no damage.
func (a *app) tellLosses(v *ledger.Verification) {
	for _, l := range v.Losses {
		fmt.Fprintf(a.Err, "shard %d: %s\n", v.Shard, output.Clean(l.String()))
	}
}

// entries returns the number of entries of the shards that answer soon, for the progress bar.
func (a *app) entries(ctx context.Context, client reader) (total int64) {
	soon, cancel := context.WithTimeout(ctx, totalWithin)
	defer cancel()
	shards, err := client.Shards(soon)
	if err != nil {
		fmt.Fprintf(a.Err, "how many entries there are is not known: %v\n", err)
	}
	for _, s := range shards {
		total += int64(s.Entries)
	}
	return total
}

var exportColumns = []string{"SHARD", "TASK", "FROM", "ENTRIES", "EVENTS", "HASH", "CHECKPOINT", "PROBLEM"}

// verifyFile checks an export and its checkpoint.
func (a *app) verifyFile(name string, f verifyFlags) error {
	against, err := a.kept(f)
	if err != nil {
		return err
	}
	file, err := os.Open(name)
	if err != nil {
		return &exitcode.UsageError{Problem: err.Error()}
	}
	var show func(ledger.Event) error
	p := a.print(exportColumns...)
	if f.show {
		p, show = output.New(a.Err, false, exportColumns...), a.shower()
	}
	v, err := ledger.ReadExport(file, show, against...)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	words := "unsigned"
	if v.Checkpoint != "" && v.Problem == "" {
		words, err = checkLast(&v, f.trust)
	}
	a.tellLosses(&v.Verification)
	if err := p.Row(v, v.Shard, cmp.Or(string(v.Task), "-"), v.From, v.Entries, v.Events, v.Hash.String()[:16], words, v.Problem); err != nil {
		return err
	}
	if v.Problem != "" {
		err = errors.Join(err, fmt.Errorf("the export %s is damaged", name))
	}
	if len(f.trust) > 0 && v.Checkpoint == "" {
		switch { // --trust has checked the kept checkpoints already
		case v.Heads == 0:
			err = errors.Join(err, fmt.Errorf("the export %s is not signed", name))
		case v.ProvedTo < v.Entries:
			err = errors.Join(err, fmt.Errorf("the export %s is not signed, and its entries after %d came after the checkpoint", name, v.ProvedTo))
		default:
			fmt.Fprintf(a.Err, "the export is not signed itself; the checkpoint covers it\n")
		}
	}
	if v.Task == "" && v.From > 1 {
		fmt.Fprintf(a.Err, "the entries before %d are not in the file: nothing of it shows what state they led to\n", v.From)
	}
	if len(against) > 0 && v.Heads == 0 {
		err = errors.Join(err, fmt.Errorf("no entry of the checkpoints is in the file %s", name))
	}
	if err = errors.Join(err, p.Flush()); err == nil && !f.show && !p.IsJSON() {
		_, err = fmt.Fprintf(a.Out, "no problem in %d entries of %s\n", v.Entries, output.Clean(name))
	}
	return err
}

// checkLast compares the export's own checkpoint with its last entry.
func checkLast(v *ledger.ExportVerification, trust []string) (string, error) {
	p, words, err := checkpoints.Open(v.Checkpoint, trust)
	if err != nil {
		return err.Error(), fmt.Errorf("checkpoint of the export: %w", err)
	}
	if len(p.Heads) != 1 || p.Cluster != v.Cluster || p.Heads[0] != (ledger.CheckpointHead{Shard: v.Shard, Entry: v.Entries, Hash: v.Hash}) {
		return words, errors.New("the checkpoint of the export is of another entry")
	}
	return words, nil
}
