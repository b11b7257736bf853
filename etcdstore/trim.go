package etcdstore

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/events"
	"taskledger/store"
)

// trimEntries bounds the entries that one transaction deletes: other writes wait for it, for a few milliseconds.
const trimEntries = 1000

// First is described in store.Trimmer. It bisects, because etcd counts all keys of any range it is given.
func (s *Store) First(ctx context.Context, shard int) (uint64, error) {
	first, err := s.first(ctx, shard)
	if err != nil {
		return 0, fmt.Errorf("find the first entry of shard %d: %w", shard, err)
	}
	return first, nil
}

func (s *Store) first(ctx context.Context, shard int) (uint64, error) {
	if there, err := s.holds(ctx, shard, 1); there || err != nil {
		return 1, err
	}
	pointer, err := s.Pointer(ctx, shard)
	if errors.Is(err, events.ErrDamaged) { // it does not tell where to look
		return s.firstHeld(ctx, shard)
	}
	if err != nil || pointer.Revision == 0 {
		return 0, err // without a snapshot nothing was trimmed
	}
	absent, there := uint64(1), oldest(pointer.Kept).Entry
	for absent+1 < there {
		middle := absent + (there-absent)/2
		held, err := s.holds(ctx, shard, middle)
		switch {
		case err != nil:
			return 0, err
		case held:
			there = middle
		default:
			absent = middle
		}
	}
	return there, nil
}

// firstHeld lets etcd look for the first entry, 0 = there is none.
func (s *Store) firstHeld(ctx context.Context, shard int) (uint64, error) {
	prefix := s.keys.journal(shard)
	resp, err := s.get(ctx, prefix, clientv3.WithRange(end(prefix)), clientv3.WithLimit(1), clientv3.WithKeysOnly())
	if err != nil || len(resp.Kvs) == 0 {
		return 0, err
	}
	return number(resp.Kvs[0].Key)
}

func (s *Store) holds(ctx context.Context, shard int, number uint64) (bool, error) {
	resp, err := s.get(ctx, s.keys.entry(shard, number), clientv3.WithKeysOnly())
	return err == nil && len(resp.Kvs) > 0, err
}

// Trim is described in store.Trimmer.
func (s *Store) Trim(ctx context.Context, o store.Ownership, p store.SnapshotPointer, first, until uint64) error {
	if err := s.trim(ctx, o, p, first, until); err != nil {
		return fmt.Errorf("trim shard %d from entry %d to %d: %w", o.Shard, first, until, err)
	}
	return nil
}

func (s *Store) trim(ctx context.Context, o store.Ownership, p store.SnapshotPointer, first, until uint64) error {
	if err := checkOwnership(o); err != nil {
		return err
	}
	if p.Revision <= 0 || len(p.Kept) != 2 || first == 0 || until > p.Kept[1].Entry {
		return fmt.Errorf("%w: no two snapshots cover it", store.ErrRefused)
	}
	for ; first < until; first += trimEntries {
		if err := s.trimPiece(ctx, o, p.Revision, first, min(first+trimEntries, until)); err != nil {
			return err
		}
	}
	return nil
}

// trimPiece deletes entries unless there is one before them: the journal has no gaps. Entries are never written
// again, so late copies do no harm. A full store takes it, because it writes nothing.
func (s *Store) trimPiece(ctx context.Context, o store.Ownership, seen int64, first, until uint64) error {
	pointer, before := s.keys.pointer(o.Shard), s.keys.entry(o.Shard, first-1)
	resp, err := s.transact(ctx,
		append(s.fences(o),
			clientv3.Compare(clientv3.ModRevision(pointer), "=", seen),
			clientv3.Compare(clientv3.CreateRevision(before), "=", 0),
		),
		[]clientv3.Op{clientv3.OpDelete(s.keys.entry(o.Shard, first), clientv3.WithRange(s.keys.entry(o.Shard, until)))},
		append(s.readFences(o), clientv3.OpGet(pointer, clientv3.WithKeysOnly())))
	if err != nil || resp.Succeeded {
		return err
	}
	if err := fenced(o, found(resp, 0), found(resp, 1)); err != nil {
		return err
	}
	if modRevision(found(resp, 2)) != seen {
		return fmt.Errorf("%w: the snapshot pointer has changed", store.ErrFenced)
	}
	return fmt.Errorf("%w: entry %d is still there", store.ErrRefused, first-1)
}
