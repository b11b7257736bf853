package ledger

import (
	"context"
	"fmt"
	"iter"

	"taskledger/events"
	"taskledger/store"
)

// Place holds the facts by which a client elsewhere reads a shard as this ledger does.
type Place struct {
	Cluster  string // its id
	Shards   int    // of the cluster
	Begins   uint64 // number of the first entry that can be read
	Revision int64  // present revision of the store
}

// Place returns where the entries of a shard begin, and the present revision of the store.
func (l *Ledger) Place(ctx context.Context, shard int) (p Place, err error) {
	r, err := l.shard(shard)
	if err != nil {
		return p, err
	}
	p = Place{Cluster: l.cfg.Cluster.ID, Shards: l.cfg.Cluster.Shards}
	if p.Begins, err = r.Begins(ctx, shard); err == nil {
		p.Revision, err = l.cfg.Revision(ctx)
	}
	if err != nil {
		return p, fmt.Errorf("place of shard %d: %w", shard, err)
	}
	return p, nil
}

// Entries yields the entries of a shard in their stored form, from number from up to the last one at the time of the
// call, from the archive where the journal was trimmed. An entry that is gone yields store.ErrTrimmed.
func (l *Ledger) Entries(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		r, err := l.shard(shard)
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for rec, err := range r.Read(ctx, shard, from) {
			if err != nil {
				err = fmt.Errorf("entries of shard %d: %w", shard, err)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Archived yields the archived entries of a shard from number from, as store.ArchiveReader does. It yields
// store.ErrNoArchive where there is no archive.
func (l *Ledger) Archived(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	if l.cfg.Archive != nil && shard >= 0 && shard < l.cfg.Cluster.Shards {
		return l.cfg.Archive.ReadArchive(ctx, shard, from)
	}
	return func(yield func(store.Record, error) bool) { yield(store.Record{}, store.ErrNoArchive) }
}

// Head returns what the owner of a shard has committed, with the digest of its state. The owner decides nothing
// meanwhile, for one to three microseconds a task.
func (l *Ledger) Head(ctx context.Context, shard int) (Head, error) {
	if _, err := l.shard(shard); err != nil {
		return Head{}, err
	}
	return l.cfg.Owners.Digest(ctx, shard), nil
}

// ShardOf returns the shard of a task.
func (l *Ledger) ShardOf(id events.TaskID) int { return id.Shard(l.cfg.Cluster.Shards) }

// shard returns what reads the journals, and refuses a shard that the cluster has not.
func (l *Ledger) shard(shard int) (*Reader, error) {
	if shard < 0 || shard >= l.cfg.Cluster.Shards {
		problem := fmt.Sprintf("%d, want 0 to %d", shard, l.cfg.Cluster.Shards-1)
		return nil, &store.InvalidError{Field: "shard", Problem: problem}
	}
	return l.reader()
}
