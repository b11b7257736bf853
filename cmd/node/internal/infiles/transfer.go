package infiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filejournal"
	"taskledger/internal/advertised"
	"taskledger/store"
)

// Copied are the parts of a data directory that are copied, while no node runs there.
type Copied struct {
	Store   *filestore.Store
	Archive *filearchive.Archive // nil = nothing was ever archived
}

// OpenToCopy is OpenToRead for whoever copies the directory. It wraps filestore.ErrUnsettled, too.
func OpenToCopy(dir, id string) (*Copied, error) {
	s, err := filestore.OpenToCopy(dir, id)
	if err != nil {
		return nil, err
	}
	c := &Copied{Store: s}
	c.Archive, err = filearchive.OpenToRead(filepath.Join(dir, archiveDir), s.Cluster().ID)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, s.Close())
	}
	return c, nil
}

// Close ends the use of the directory.
func (c *Copied) Close() error {
	var err error
	if c.Archive != nil {
		err = c.Archive.Close()
	}
	return errors.Join(err, c.Store.Close())
}

// Received are the parts of a data directory into which a cluster is copied.
type Received struct {
	*filestore.Receiver
	Archive *LazyArchive
}

// Receive looks at a data directory into which a cluster is to be copied, and changes nothing there. The caller closes
// it.
func Receive(dir string, c store.Cluster, of string, files filejournal.Options) (*Received, error) {
	if err := advertised.CheckClosed(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("copy to %s: %w", dir, err)
	}
	r, err := filestore.Receive(dir, c, of, files)
	if err != nil {
		return nil, fmt.Errorf("copy to: %w", err)
	}
	return &Received{
		Receiver: r,
		Archive:  &LazyArchive{dir: filepath.Join(dir, archiveDir), cluster: c.ID},
	}, nil
}

// Close ends the use of the directory.
func (r *Received) Close() error { return errors.Join(r.Archive.Close(), r.Receiver.Close()) }

// LazyArchive is the archive in a directory, which is made by the first segment. Its methods may be called
// concurrently.
type LazyArchive struct {
	dir, cluster string

	mu     sync.Mutex
	opened *filearchive.Archive // nil: not yet
	writes bool
}

var _ store.Archive = (*LazyArchive)(nil)

// now returns the archive; nil = there is none, and it is only read.
func (a *LazyArchive) now(write bool) (*filearchive.Archive, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.opened != nil && (a.writes || !write) {
		return a.opened, nil
	}
	if !write {
		opened, err := filearchive.OpenToRead(a.dir, a.cluster)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		a.opened = opened
		return opened, err
	}
	if err := a.end(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(a.dir), 0o700); err != nil {
		return nil, err
	}
	opened, err := filearchive.Open(a.dir, a.cluster)
	a.opened, a.writes = opened, err == nil
	return opened, err
}

// end closes what is open. The caller holds mu.
func (a *LazyArchive) end() error {
	if a.opened == nil {
		return nil
	}
	err := a.opened.Close()
	a.opened, a.writes = nil, false
	return err
}

// Close ends the use of the directory.
func (a *LazyArchive) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.end()
}

// Head implements store.Archiver.
func (a *LazyArchive) Head(ctx context.Context, shard int) (store.ArchiveHead, error) {
	opened, err := a.now(false)
	if opened == nil || err != nil {
		return store.ArchiveHead{}, err
	}
	return opened.Head(ctx, shard)
}

// Archive implements store.Archiver.
func (a *LazyArchive) Archive(
	ctx context.Context, shard int, after store.ArchiveHead, entries []store.Record,
) (store.ArchiveHead, error) {
	opened, err := a.now(true)
	if err != nil {
		return after, err
	}
	return opened.Archive(ctx, shard, after, entries)
}

// Confirm implements store.Archiver.
func (a *LazyArchive) Confirm(ctx context.Context, shard int, head store.ArchiveHead, entries []store.Record) error {
	opened, err := a.now(false)
	if err != nil {
		return err
	}
	if opened == nil {
		return store.ErrConflict
	}
	return opened.Confirm(ctx, shard, head, entries)
}

// DurableAfter implements store.Archiver: what is acknowledged is durable at once.
func (a *LazyArchive) DurableAfter() time.Duration { return 0 }

// ReadArchive implements store.ArchiveReader.
func (a *LazyArchive) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return a.read(func(opened *filearchive.Archive) iter.Seq2[store.Record, error] {
		return opened.ReadArchive(ctx, shard, from)
	})
}

// FindArchived implements store.ArchiveReader.
func (a *LazyArchive) FindArchived(
	ctx context.Context, shard int, task events.TaskID, last uint64,
) iter.Seq2[store.Record, error] {
	return a.read(func(opened *filearchive.Archive) iter.Seq2[store.Record, error] {
		return opened.FindArchived(ctx, shard, task, last)
	})
}

func (a *LazyArchive) read(
	from func(*filearchive.Archive) iter.Seq2[store.Record, error],
) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		opened, err := a.now(false)
		switch {
		case err != nil:
			yield(store.Record{}, err)
		case opened == nil:
			yield(store.Record{}, store.ErrNoArchive)
		default:
			from(opened)(yield)
		}
	}
}
