package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"taskledger/cluster"
	"taskledger/cmd/node/internal/archiving"
	"taskledger/cmd/node/internal/connect"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/httpd"
	"taskledger/cmd/node/internal/infiles"
	"taskledger/engine/embedded"
	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/filelogs"
)

// What an operator may choose for the store.
const (
	storeInEtcd  = "etcd"
	storeInFiles = "files"
)

// fileOptions are the flags of serve for a store in files.
type fileOptions struct {
	store      string
	durability string
	lossBound  time.Duration
}

func (o *fileOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.store, "store", storeInEtcd, `where the node keeps everything: etcd, or files of --data, for one node
without etcd and NATS`)
	f.StringVar(&o.durability, "durability", "",
		`strict answers once a write is synced; opportunistic before, and a crash of the
machine loses --loss-bound at most; with --store files, chosen when the store is created (default strict)`)
	f.DurationVar(&o.lossBound, "loss-bound", 0,
		`time whose writes a crash of the machine may lose with --durability opportunistic, chosen when the store is
created (default 1s)`)
}

// inFiles reports whether the node has its store in files.
func (o *fileOptions) inFiles() bool { return o.store == storeInFiles }

// checkStore says which flags do not go together with where the store is, "" for none.
func (o *serveOptions) checkStore(c *access) string {
	changed := func(name string) bool { return o.set.Lookup(name).Changed }
	switch {
	case o.store != storeInEtcd && o.store != storeInFiles:
		return fmt.Sprintf("--store %s: want etcd or files", o.store)
	case !o.inFiles() && (changed("durability") || changed("loss-bound")):
		return "--durability and --loss-bound are of --store files, which is not given"
	case !o.inFiles() && o.archive == archiving.Files:
		return "--archive files is of --store files, which is not given: want jetstream, keep or drop"
	case !o.inFiles() && o.logs.where == logsInFiles:
		return "--logs files is of --store files, which is not given: want jetstream or none"
	case !o.inFiles():
		return ""
	case len(c.addresses.Etcd) > 0 || len(c.addresses.NATS) > 0:
		return "--store files is for one node without etcd and NATS, and --etcd and --nats name some: " +
			"want one of the two"
	case o.join != "":
		return "--store files is for one node that is alone, and --join names another one: want one of the two"
	case c.addresses.Cluster != "":
		return "--cluster: a directory of --store files holds one cluster, without a name"
	case o.newCluster:
		return "--new-cluster is of etcd and NATS: with --store files name another directory by --data"
	case o.etcdPort != 0 || o.natsPort != 0:
		return "--etcd-port and --nats-port are of servers inside, and with --store files this node has none"
	case o.archive == archiving.JetStream:
		return "--archive jetstream: with --store files there is no NATS: want files, keep or drop"
	case o.logs.where == logsInJetStream:
		return "--logs jetstream: with --store files there is no NATS: want files or none"
	case !o.owner:
		return "--owner=false: with --store files no other node owns the shards"
	case changed("archive-settle") || changed("archive-replicas") || changed("log-replicas"):
		return "--archive-settle, --archive-replicas and --log-replicas are of NATS, which --store files does without"
	case !slices.Contains(durabilities, o.durability):
		return fmt.Sprintf("--durability %s: want strict or opportunistic", o.durability)
	case changed("loss-bound") && o.lossBound < minLossBound:
		return fmt.Sprintf("--loss-bound %s: want %s or more", o.lossBound, minLossBound)
	case changed("loss-bound") && o.durability == string(filejournal.Strict):
		return "--loss-bound is of --durability opportunistic: strict loses nothing"
	}
	return ""
}

// durabilities lists the values of --durability, "" for none.
var durabilities = []string{"", string(filejournal.Strict), string(filejournal.Opportunistic)}

// minLossBound is the shortest time that a loss can be bounded to.
const minLossBound = 2 * time.Millisecond

// otherStore refuses a data directory with a store of another kind.
func otherStore(dir, kind, remedy string) error {
	return fmt.Errorf("%s: %w: it is in %s; name another directory by --data, or %s",
		dir, infiles.ErrOtherStore, kind, remedy)
}

// checkFilesOfStore reads the store of the data directory, where there is one, and says what it is.
func (a *app) checkFilesOfStore() (says string, err error) {
	dir, id := a.access.dir, a.access.addresses.ID
	holds, err := infiles.Holds(dir)
	switch {
	case err != nil:
		return "", err
	case embedded.Served(dir):
		return "", otherStore(dir, "etcd", "leave out --store files")
	case !holds && id != "":
		return "", fmt.Errorf("%w: %s holds no store, and that of id %s is expected",
			filestore.ErrOtherCluster, dir, id)
	}
	if err := filejournal.CheckWrite(dir); err != nil {
		return "", err
	}
	if !holds {
		return "there is no store yet", nil
	}
	files, err := infiles.OpenToRead(dir, id)
	if err != nil {
		return "", err
	}
	shards, err := files.Shards(context.Background())
	if unsettled := files.Unsettled(); unsettled != nil {
		tellUnsettled(a.Err, a.Name, dir, unsettled)
	}
	if a.serve.logs.where != noLogs {
		err = errors.Join(err, files.CheckLogs())
	}
	if err := errors.Join(err, files.Close()); err != nil {
		return "", err
	}
	if wants := a.serve.shards; wants != 0 && wants != len(shards) {
		return "", fmt.Errorf("%d shards asked for, and it has %d: %w", wants, len(shards), filestore.ErrShards)
	}
	is := shards[0].Durability
	if wants := a.serve.durability; wants != "" && wants != is {
		return "", fmt.Errorf("%w: --durability %s, and it is %s", filejournal.ErrDurability, wants, is)
	}
	return fmt.Sprintf("a store of %d shards, %s, no node runs there", len(shards), is), nil
}

// openFiles opens what the node stands on, in files of its data directory.
func (a *app) openFiles() (*connect.Link, httpd.Place, error) {
	dir, o := a.access.dir, &a.serve
	if embedded.Served(dir) {
		return nil, nil, otherStore(dir, "etcd", "leave out --store files")
	}
	cfg := infiles.Config{
		Store: filestore.Config{
			Shards: o.shards,
			ID:     a.access.addresses.ID,
		},
		Files: filejournal.Options{
			Durability: filejournal.Durability(o.durability),
			Lag:        o.lossBound,
		},
	}
	if o.logs.where != noLogs {
		cfg.Logs = &filelogs.Config{MaxBytes: o.logs.MaxBytes, MaxAge: o.logs.MaxAge}
	}
	files, err := infiles.Open(dir, cfg)
	if errors.Is(err, filejournal.ErrDurability) {
		problem := fmt.Sprintf("--durability and --loss-bound: %v; both are chosen once for a directory", err)
		err = &exitcode.UsageError{Problem: problem}
	}
	if err != nil {
		return nil, nil, err
	}
	o.durability = files.Store.Durability()
	o.api.Local = true
	open := &cluster.Cluster{
		Store:   files.Store,
		Bus:     files.Bus,
		Archive: files.Archive,
	}
	if files.Logs != nil {
		open.Logs = files.Logs
	}
	return &connect.Link{Cluster: open}, files, nil
}
