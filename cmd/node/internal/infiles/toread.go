package infiles

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"taskledger/engine"
	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filelogs"
	"taskledger/ledger"
)

// Reading is a data directory that is read while no node runs there.
type Reading struct {
	dir     string
	store   *filestore.Store
	archive *filearchive.Archive // nil = nothing was ever archived
}

// OpenToRead opens a data directory without changing anything there. It wraps filejournal.ErrInUse while a node runs,
// and filestore.ErrOtherCluster where id is not "" and another one's. The caller closes it.
func OpenToRead(dir, id string) (*Reading, error) {
	s, err := filestore.OpenToRead(dir, id)
	if err != nil {
		return nil, err
	}
	r := &Reading{dir: dir, store: s}
	r.archive, err = filearchive.OpenToRead(filepath.Join(dir, archiveDir), s.Cluster().ID)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, s.Close())
	}
	return r, nil
}

// CheckLogs reads the logs of tasks, and returns why no node could open them. It changes nothing.
func (r *Reading) CheckLogs() error {
	return filelogs.Check(filepath.Join(r.dir, logsDir), r.store.Cluster().ID)
}

// Unsettled returns an error that wraps filestore.ErrUnsettled where entries that were answered may be missing.
func (r *Reading) Unsettled() error { return r.store.Unsettled() }

// Ledger returns a reader of the journal. No owner answers.
func (r *Reading) Ledger() *ledger.Ledger {
	cfg := ledger.Config{
		Cluster:   r.store.Cluster(),
		Journal:   r.store,
		Snapshots: r.store,
		Revision: func(ctx context.Context) (int64, error) {
			members, err := r.store.ReadMembers(ctx)
			return members.Revision, err
		},
	}
	if r.archive != nil {
		cfg.Archive = r.archive
	}
	return ledger.New(cfg)
}

// Shards tells of each shard how many entries it has; nobody is there who knows more.
func (r *Reading) Shards(context.Context) ([]engine.ShardInfo, error) {
	all := make([]engine.ShardInfo, r.store.Cluster().Shards)
	for i := range all {
		all[i] = engine.ShardInfo{
			Shard:      i,
			Entries:    r.store.Last(i).Number,
			Durability: r.store.Durability(),
		}
	}
	return all, nil
}

// Close ends the use of the directory.
func (r *Reading) Close() error {
	var err error
	if r.archive != nil {
		err = r.archive.Close()
	}
	return errors.Join(err, r.store.Close())
}
