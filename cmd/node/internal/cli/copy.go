package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/archiving"
	"taskledger/cmd/node/internal/connect"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/infiles"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/progress"
	"taskledger/engine/embedded"
	"taskledger/filestore/filejournal"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/transfer"
)

// copyOptions are the flags of copy, backup and restore.
type copyOptions struct {
	from, to   string // a directory of files, or placeEtcd
	archive    string
	durability string
	archiving  natsbus.ArchiveConfig
	restored   bool // nodes ran after the source was made
}

// placeEtcd names the cluster that the flags of access do.
const placeEtcd = "etcd"

const aboutCopy = `
etcd is the cluster that --etcd and --nats name, or that of the node with the servers inside whose directory --data
names: its servers are started for the time of the copy. DIR is a directory of serve --store files; a directory named
etcd is ./etcd.

No node may run on either side. The journals keep their numbers, bytes and hashes; snapshots, losses that no owner has
recorded yet, and the archive are copied, too. The logs of tasks and the tokens of the API are not. The copy is read
back and checked before it can be used: one that was interrupted is refused by every other command, and goes on where
it ended when it is made again. A target that holds anything else is refused, and nothing is changed.`

func (a *app) copyCommand() *cobra.Command {
	var o copyOptions
	c := &cobra.Command{
		Use:   "copy --from DIR|etcd --to DIR|etcd",
		Short: "Copy a stopped cluster into a directory of files, or into etcd",
		Long:  "Copy copies a cluster whose nodes are stopped into a store of another kind, where it goes on.\n" + aboutCopy,
		Args:  flags.NoArguments,
	}
	c.Flags().StringVar(&o.from, "from", "", "`DIR` of files, or etcd")
	c.Flags().StringVar(&o.to, "to", "", "`DIR` of files, or etcd")
	a.completeFlag(c, "from", orFiles(placeEtcd))
	a.completeFlag(c, "to", orFiles(placeEtcd))
	a.copyFlags(c, &o)
	restoredFlag(c, &o)
	return c
}

// restoredFlag adds the flag of the commands that may take a cluster back to an earlier time.
func restoredFlag(c *cobra.Command, o *copyOptions) {
	c.Flags().BoolVar(&o.restored, "restored", false, `nodes ran after the source was made, and the cluster goes back to its time: each shard records that it may have
lost something, so that ids of items are not given again`)
}

func (a *app) backupCommand() *cobra.Command {
	o := copyOptions{from: placeEtcd}
	c := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy a stopped cluster from etcd into a directory of files",
		Long: `Backup is copy --from etcd --to DIR: a copy that restore brings back, and that a node can serve. A
cluster whose nodes run is backed up by etcd's own tools (docs/backup.md).
` + aboutCopy,
		Args: flags.Arguments,
	}
	a.copyFlags(c, &o)
	return takeDir(c, &o.to)
}

func (a *app) restoreCommand() *cobra.Command {
	o := copyOptions{to: placeEtcd}
	c := &cobra.Command{
		Use:   "restore DIR",
		Short: "Copy a directory of files into an empty etcd cluster",
		Long: `Restore is copy --from DIR --to etcd. The cluster goes back to the time of the backup: what was
acknowledged after it is lost, and its numbers, ids and fencing tokens may be given again. Where nodes ran after the
backup, give --restored: ids of items are then not given again.
` + aboutCopy,
		Args: flags.Arguments,
	}
	a.copyFlags(c, &o)
	restoredFlag(c, &o)
	return takeDir(c, &o.from)
}

// takeDir makes the argument of a command the place on one side.
func takeDir(c *cobra.Command, into *string) *cobra.Command {
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *into = args[0]; *into == placeEtcd {
			*into = "./" + placeEtcd
		}
		return run(cmd, nil)
	}
	return c
}

func (a *app) copyFlags(c *cobra.Command, o *copyOptions) {
	f := c.Flags()
	f.AddFlagSet(a.access.flags())
	flags.LevelVar(f, &a.access.logLevel, slog.LevelError)
	f.StringVar(&o.archive, "archive", "", `where the archive of the source is: jetstream, files, or keep where the journal holds all; drop leaves out
what was trimmed (default: the one that is there)`)
	if o.to != placeEtcd { // a copy into etcd makes no directory
		f.StringVar(&o.durability, "durability", "",
			"durability of a directory that is made, as for serve: strict or opportunistic (default strict)")
		a.completeFlag(c, "durability", words(durabilities[1:]...))
	}
	f.IntVar(&o.archiving.Replicas, "archive-replicas", 1, "copies of the archive that NATS keeps, 1 to 5, when its stream is made; with --nats")
	f.DurationVar(&o.archiving.DurableAfter, "archive-settle", 0,
		"time after which NATS has surely written what it acknowledged, which is awaited (default 3m)")
	a.completeFlag(c, "log-level", words(levels...))
	a.completeFlag(c, "archive", words(archiving.JetStream, archiving.Files, archiving.Keep, archiving.Drop))
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if problem := o.check(); problem != "" {
			return &exitcode.UsageError{Problem: problem}
		}
		ctx := cmd.Context()
		if limit := a.access.timeout; limit > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeoutCause(ctx, limit, exitcode.ErrTimeout)
			defer stop()
		}
		return a.copy(ctx, o)
	}
}

// check says which flags do not go together, "" for none.
func (o *copyOptions) check() string {
	etcd := o.from == placeEtcd
	switch {
	case o.from == "" || o.to == "":
		return "want --from and --to, each a directory of files, or etcd"
	case !etcd && o.to != placeEtcd && sameDir(o.from, o.to):
		return fmt.Sprintf("--from %s --to %s: want another directory", o.from, o.to)
	case etcd && o.to == placeEtcd:
		return "--from etcd --to etcd: the flags name one cluster; copy it by way of a directory"
	case !slices.Contains([]string{"", archiving.JetStream, archiving.Files, archiving.Keep, archiving.Drop}, o.archive):
		return fmt.Sprintf("--archive %s: want jetstream, files, keep or drop", o.archive)
	case o.archive == archiving.JetStream && !etcd:
		return "--archive jetstream: it is of the source, which is in files"
	case o.archive == archiving.Files && etcd:
		return "--archive files: it is of the source, which is in etcd"
	case !slices.Contains(durabilities, o.durability):
		return fmt.Sprintf("--durability %s: want strict or opportunistic", o.durability)
	case o.durability != "" && o.to == placeEtcd:
		return "--durability is of a directory of files, and the copy goes to etcd"
	case o.archiving.Replicas < 1 || o.archiving.Replicas > natsbus.MaxReplicas:
		return fmt.Sprintf("--archive-replicas %d: want 1 to %d", o.archiving.Replicas, natsbus.MaxReplicas)
	case o.archiving.DurableAfter < 0:
		return fmt.Sprintf("--archive-settle %s: want 0 or more", o.archiving.DurableAfter)
	}
	return ""
}

// sameDir reports whether two names are of one directory, which need not be there.
func sameDir(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	one, errOne := os.Stat(a)
	other, errOther := os.Stat(b)
	return errOne == nil && errOther == nil && os.SameFile(one, other)
}

// copy copies a cluster, and prints what was copied of each shard.
func (a *app) copy(ctx context.Context, o *copyOptions) (err error) {
	at := &copying{app: a, options: o, log: slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: a.access.logLevel}))}
	defer func() { err = errors.Join(err, at.close()) }()
	cfg, err := at.open(ctx)
	if err != nil {
		return err
	}
	bar, doing, done := progress.NewBar(a.Err, "entries"), "", int64(0)
	cfg.Progress = func(shard int, now string) {
		if now != doing {
			doing, done = now, 0
			if now == transfer.Settling {
				fmt.Fprintf(a.Err, "%s\n", now)
			}
		}
		done++
		bar.Show(done, done, fmt.Sprintf("%s, shard %d", now, shard))
	}
	all, err := transfer.Copy(ctx, cfg)
	bar.Done()
	if err != nil {
		return err
	}
	p := a.print("SHARD", "FIRST", "ENTRIES", "ARCHIVED", "SNAPSHOTS", "TASKS", "COPIED", "HASH")
	for _, s := range all {
		if err := p.Row(s, s.Shard, s.First, s.Entries, s.Archived, s.Snapshots, s.Tasks, s.Copied, s.Hash[:min(16, len(s.Hash))]); err != nil {
			return exitcode.Unprinted("the cluster was copied", err)
		}
	}
	fmt.Fprintf(a.Err, "cluster %s was copied to %s and checked; not copied: logs of tasks, tokens of the API\n",
		cfg.From.Cluster().ID, at.name(o.to))
	return exitcode.Unprinted("the cluster was copied", p.Flush())
}

// copying holds what is open for a copy.
type copying struct {
	app     *app
	options *copyOptions
	log     *slog.Logger
	closers []func() error // the first one opened is closed last
}

func (c *copying) close() error {
	var errs []error
	for _, end := range slices.Backward(c.closers) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// name names a side of the copy for people.
func (c *copying) name(place string) string {
	access := &c.app.access
	switch {
	case place != placeEtcd:
		return place
	case len(access.addresses.Etcd) > 0:
		return "etcd at " + strings.Join(access.addresses.Etcd, ", ")
	}
	return "etcd in " + access.dir
}

// open opens both sides.
func (c *copying) open(ctx context.Context) (cfg transfer.Config, err error) {
	o := c.options
	cfg.Drop, cfg.Restored = o.archive == archiving.Drop, o.restored
	if o.from == placeEtcd {
		err = c.fromEtcd(ctx, &cfg)
	} else {
		err = c.fromFiles(&cfg)
	}
	if err != nil {
		return cfg, err
	}
	if o.archive == archiving.Keep || o.archive == archiving.Drop {
		cfg.FromArchive = nil
	}
	if cfg.FromArchive == nil && (o.archive == archiving.JetStream || o.archive == archiving.Files) {
		return cfg, fmt.Errorf("--archive %s: %w", o.archive, store.ErrNoArchive)
	}
	if o.to == placeEtcd {
		return cfg, c.toEtcd(ctx, &cfg)
	}
	return cfg, c.toFiles(&cfg)
}

func (c *copying) fromFiles(cfg *transfer.Config) error {
	dir := c.options.from
	holds, err := infiles.Holds(dir)
	switch {
	case err != nil:
		return fmt.Errorf("copy from %s: %w", dir, err)
	case embedded.Served(dir):
		return fmt.Errorf("copy from %s: %w: it is in etcd; want --from etcd --data %s", dir, infiles.ErrOtherStore, dir)
	case !holds:
		return &exitcode.UsageError{Problem: fmt.Sprintf("no store in files is in %s", dir)}
	}
	files, err := infiles.OpenToCopy(dir, c.app.access.addresses.ID)
	if err != nil {
		return fmt.Errorf("copy from: %w", err)
	}
	c.closers = append(c.closers, files.Close)
	cfg.From = files.Store
	if files.Archive != nil {
		cfg.FromArchive = files.Archive
	}
	return nil
}

func (c *copying) toFiles(cfg *transfer.Config) error {
	dir := c.options.to
	if embedded.Served(dir) {
		return fmt.Errorf("copy to %s: %w: it is in etcd; name another directory", dir, infiles.ErrOtherStore)
	}
	into, err := infiles.Receive(dir, cfg.From.Cluster(), c.name(c.options.from),
		filejournal.Options{Durability: filejournal.Durability(c.options.durability)})
	if errors.Is(err, filejournal.ErrDurability) {
		err = &exitcode.UsageError{Problem: err.Error()}
	}
	if err != nil {
		return err
	}
	c.closers = append(c.closers, into.Close)
	cfg.To, cfg.ToArchive = into.Receiver, into.Archive
	return nil
}

// servers starts the servers of the data directory; nil = others are named.
func (c *copying) servers(ctx context.Context) (*embedded.Servers, error) {
	access := &c.app.access
	if len(access.addresses.Etcd) > 0 {
		return nil, nil
	}
	holds, err := infiles.Holds(access.dir)
	if err != nil {
		return nil, err
	}
	if holds {
		return nil, fmt.Errorf("%s: %w: it is in files; name another directory by --data", access.dir, infiles.ErrOtherStore)
	}
	s, err := embedded.StartServers(ctx, embedded.ServersConfig{Dir: access.dir, ID: access.addresses.ID, Log: c.log})
	if err != nil {
		return nil, err
	}
	c.closers = append(c.closers, s.Close)
	return s, nil
}

func (c *copying) fromEtcd(ctx context.Context, cfg *transfer.Config) error {
	access := &c.app.access
	if len(access.addresses.Etcd) == 0 && !embedded.Served(access.dir) {
		problem := fmt.Sprintf("no etcd is in %s: name one by --data, or by --etcd", access.dir)
		if holds, _ := infiles.Holds(access.dir); holds {
			problem = fmt.Sprintf("%s is a store in files: copy --from %s --to DIR copies it", access.dir, access.dir)
		}
		return &exitcode.UsageError{Problem: problem}
	}
	servers, err := c.servers(ctx)
	if err == nil && servers != nil {
		err = c.onServers(ctx, servers, cfg)
	} else if err == nil {
		err = c.atServers(ctx, cfg)
	}
	if err != nil {
		return fmt.Errorf("copy from: %w", err)
	}
	if cfg.FromArchive == nil {
		return nil
	}
	if _, err := cfg.FromArchive.Head(ctx, 0); errors.Is(err, natsbus.ErrNoJetStream) {
		fmt.Fprintf(c.app.Err, "no archive is copied: %v\n", err)
		cfg.FromArchive = nil
	}
	return nil
}

// sessionsWithin bounds the wait for the ends of sessions on servers of this process.
const sessionsWithin = 2 * time.Minute

// onServers opens the cluster on servers of this process. Sessions of nodes that were killed end while these run alone.
func (c *copying) onServers(ctx context.Context, servers *embedded.Servers, cfg *transfer.Config) error {
	a := c.app.access.addresses
	a.Log = c.log
	from, err := connect.SendOn(ctx, servers, a)
	if err != nil {
		return err
	}
	c.closers = append(c.closers, from.Close)
	cfg.From, cfg.FromArchive = from.Store, from.Archive
	ctx, stop := context.WithTimeoutCause(ctx, sessionsWithin, exitcode.ErrTimeout)
	defer stop()
	return from.AwaitEnded(ctx, func(node string) {
		fmt.Fprintf(c.app.Err, "waiting until the session of node %s ends, which was killed\n", output.Clean(node))
	})
}

// atServers opens the cluster at the addresses that the flags name.
func (c *copying) atServers(ctx context.Context, cfg *transfer.Config) error {
	link, err := c.app.access.open(ctx, c.log, true)
	if err != nil {
		return err
	}
	c.closers = append(c.closers, link.Close)
	cfg.From = link.Store
	if link.Archive != nil {
		cfg.FromArchive = link.Archive
	}
	return nil
}

func (c *copying) toEtcd(ctx context.Context, cfg *transfer.Config) error {
	servers, err := c.servers(ctx)
	if err != nil {
		return fmt.Errorf("copy to: %w", err)
	}
	access := &c.app.access
	is, of := cfg.From.Cluster(), c.name(c.options.from)
	var into *connect.Receiving
	if servers != nil {
		into, err = connect.ReceiveOn(ctx, servers, access.addresses.Cluster, is, of, c.log)
	} else {
		var at connect.Addresses
		if at, err = access.named(); err != nil {
			return err
		}
		at.Log, at.Archive = c.log, c.options.archiving
		into, err = connect.ReceiveAt(ctx, at, is, of)
	}
	if err != nil {
		return fmt.Errorf("copy to %s: %w", c.name(placeEtcd), err)
	}
	c.closers = append(c.closers, into.Close)
	cfg.To = into.Receiver
	if cfg.ToArchive = into.Archive; cfg.ToArchive == nil && cfg.FromArchive != nil {
		c.log.Warn("no NATS with JetStream is named, which would take an archive")
	}
	return nil
}
