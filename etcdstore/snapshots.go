package etcdstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/events"
	"taskledger/store"
)

// pageParts bounds one reply to 1 MiB of the usual parts.
const pageParts = 16

// PutPart is described in store.Snapshots.
func (s *Store) PutPart(ctx context.Context, o store.Ownership, entry uint64, part int, data []byte) error {
	if err := s.putPart(ctx, o, entry, part, data); err != nil {
		return fmt.Errorf("put part %d of snapshot %d of shard %d: %w", part, entry, o.Shard, err)
	}
	return nil
}

func (s *Store) putPart(ctx context.Context, o store.Ownership, entry uint64, part int, data []byte) error {
	if err := checkOwnership(o); err != nil {
		return err
	}
	if entry == 0 || part < 0 || part >= maxParts {
		return fmt.Errorf("%w: no such part", store.ErrRefused)
	}
	key := s.keys.part(o.Shard, entry, o.Revision, part)
	resp, err := s.transact(ctx,
		append(s.fences(o),
			clientv3.Compare(clientv3.CreateRevision(key), "=", 0),
		),
		[]clientv3.Op{put(key, data)},
		append(s.readFences(o), clientv3.OpGet(key)))
	if err != nil || resp.Succeeded {
		return err
	}
	if stored := found(resp, 2); stored != nil && bytes.Equal(stored.Value, data) {
		return nil // an earlier copy was applied
	}
	if err := fenced(o, found(resp, 0), found(resp, 1)); err != nil {
		return err
	}
	return fmt.Errorf("%w: it was written with other bytes", store.ErrRefused)
}

// Publish is described in store.Snapshots.
func (s *Store) Publish(
	ctx context.Context,
	o store.Ownership,
	seen store.SnapshotPointer,
	snapshot store.SnapshotInfo,
) (store.SnapshotPointer, error) {
	kept := append([]store.SnapshotInfo{snapshot}, seen.Kept[:min(len(seen.Kept), 1)]...)
	rev, err := s.publish(ctx, o, seen.Revision, kept)
	if err != nil {
		return store.SnapshotPointer{}, fmt.Errorf("publish snapshot %d of shard %d: %w", snapshot.Entry, o.Shard, err)
	}
	return store.SnapshotPointer{Revision: rev, Kept: kept}, nil
}

// publish replaces the pointer of revision seen. While the first part is there, no other pointer has removed parts
// since it was put, and it was the first to be put.
func (s *Store) publish(ctx context.Context, o store.Ownership, seen int64, kept []store.SnapshotInfo) (int64, error) {
	if err := checkOwnership(o); err != nil {
		return 0, err
	}
	if err := checkKept(kept); err != nil {
		return 0, fmt.Errorf("%w: %w", store.ErrRefused, err)
	}
	if kept[0].Epoch != o.Revision {
		return 0, fmt.Errorf("%w: taken in epoch %d, this is %d", store.ErrRefused, kept[0].Epoch, o.Revision)
	}
	pointer, first := s.keys.pointer(o.Shard), s.keys.part(o.Shard, kept[0].Entry, kept[0].Epoch, 0)
	value := encodePointer(kept)
	resp, err := s.transact(ctx,
		append(s.fences(o),
			clientv3.Compare(clientv3.ModRevision(pointer), "=", seen),
			clientv3.Compare(clientv3.CreateRevision(first), ">", 0),
		),
		append(s.removeOthers(o.Shard, kept), put(pointer, value)),
		append(s.readFences(o), clientv3.OpGet(pointer)))
	if err != nil {
		return 0, err
	}
	if resp.Succeeded {
		return resp.Header.Revision, nil
	}
	now := found(resp, 2)
	if modRevision(now) > seen && bytes.Equal(now.Value, value) {
		return now.ModRevision, nil // an earlier copy was applied
	}
	if err := fenced(o, found(resp, 0), found(resp, 1)); err != nil {
		return 0, err
	}
	if modRevision(now) != seen {
		return 0, fmt.Errorf("%w: the pointer has changed", store.ErrFenced)
	}
	return 0, fmt.Errorf("%w: its parts are gone", store.ErrRefused)
}

// removeOthers deletes what is stored of the shard's snapshots and belongs to none of those kept: what lies before,
// between and after them.
func (s *Store) removeOthers(shard int, kept []store.SnapshotInfo) (deletes []clientv3.Op) {
	key := func(k store.SnapshotInfo, part int) string { return s.keys.part(shard, k.Entry, k.Epoch, part) }
	inOrder := slices.SortedFunc(slices.Values(kept),
		func(a, b store.SnapshotInfo) int { return cmp.Compare(key(a, 0), key(b, 0)) })
	from := s.keys.parts(shard)
	for _, k := range inOrder {
		deletes = append(deletes, clientv3.OpDelete(from, clientv3.WithRange(key(k, 0))))
		from = key(k, k.Parts)
	}
	return append(deletes, clientv3.OpDelete(from, clientv3.WithRange(end(s.keys.parts(shard)))))
}

// Pointer is described in store.Snapshots.
func (s *Store) Pointer(ctx context.Context, shard int) (store.SnapshotPointer, error) {
	resp, err := s.get(ctx, s.keys.pointer(shard))
	if err != nil {
		return store.SnapshotPointer{}, fmt.Errorf("read snapshot pointer of shard %d: %w", shard, err)
	}
	if len(resp.Kvs) == 0 {
		return store.SnapshotPointer{}, nil
	}
	kept, err := decodePointer(resp.Kvs[0].Value)
	if err != nil {
		return store.SnapshotPointer{Revision: resp.Kvs[0].ModRevision},
			fmt.Errorf("read snapshot pointer of shard %d: %w: %w", shard, events.ErrDamaged, err)
	}
	return store.SnapshotPointer{Revision: resp.Kvs[0].ModRevision, Kept: kept}, nil
}

// partPage holds the parts that one read returned, and the error that followed them.
type partPage struct {
	parts [][]byte
	err   error
}

// Parts is described in store.Snapshots. While the consumer works on a page, the next one is read; nothing is read any
// more once the loop has ended.
func (s *Store) Parts(ctx context.Context, shard int, snapshot store.SnapshotInfo) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var reading sync.WaitGroup
		defer reading.Wait()
		defer cancel()
		pages := make(chan partPage, 1)
		read := func(from int) {
			reading.Go(func() { pages <- s.partPage(ctx, shard, snapshot, from) })
		}
		read(0)
		for next := 0; next < snapshot.Parts; {
			page := <-pages
			next += len(page.parts)
			if page.err == nil && next < snapshot.Parts {
				read(next)
			}
			for _, part := range page.parts {
				if !yield(part, nil) {
					return
				}
			}
			if page.err != nil {
				yield(nil, fmt.Errorf("read part %d of snapshot %d of shard %d: %w", next, snapshot.Entry, shard, page.err))
				return
			}
		}
	}
}

// partPage reads the parts from number from on, at least one of them unless it fails.
func (s *Store) partPage(ctx context.Context, shard int, snapshot store.SnapshotInfo, from int) (page partPage) {
	key := func(part int) string { return s.keys.part(shard, snapshot.Entry, snapshot.Epoch, part) }
	until := min(from+pageParts, snapshot.Parts)
	resp, err := s.get(ctx, key(from), clientv3.WithRange(key(until)))
	if err != nil {
		return partPage{err: err}
	}
	for i := range until - from {
		if i == len(resp.Kvs) || string(resp.Kvs[i].Key) != key(from+i) {
			page.err = store.ErrTrimmed
			break
		}
		page.parts = append(page.parts, resp.Kvs[i].Value)
	}
	return page
}

// modRevision returns 0 for a key that is absent, as etcd's compares do.
func modRevision(kv *mvccpb.KeyValue) int64 {
	if kv == nil {
		return 0
	}
	return kv.ModRevision
}
