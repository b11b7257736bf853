package filestore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"taskledger/store"
)

// noteBytes stands for what the notes of a store take.
const noteBytes = 4 << 10

// Usage is described in store.Housekeeping. What is in use are the entries and the snapshots; files are compacted
// when a snapshot is written, so nothing else is counted. The store is full while a write waits for room.
func (s *Store) Usage(ctx context.Context) (store.Usage, error) {
	if err := ctx.Err(); err != nil {
		return store.Usage{}, fmt.Errorf("ask how full the store is: %w", err)
	}
	s.lock()
	defer s.mu.Unlock()
	u := store.Usage{
		InUse:    noteBytes + int64(s.mail),
		Quota:    s.quota,
		Revision: s.revision,
		Full:     s.waiting.Load() > 0,
	}
	for i, at := range s.shards {
		u.InUse += at.bytes
		for _, k := range s.notes.of(i).Pointer.Kept {
			u.InUse += k.Bytes
		}
	}
	u.Size = u.InUse
	return u, nil
}

// Compact is described in store.Housekeeping. There is nothing to do: no value is kept that was replaced.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	s.lock()
	defer s.mu.Unlock()
	if revision > s.revision {
		return fmt.Errorf("compact to revision %d: the last one is %d", revision, s.revision)
	}
	return ctx.Err()
}

// Defragment is described in store.Housekeeping. It always wraps store.ErrRefused: files are written anew once
// less than a quarter of them is needed, when a snapshot says so.
func (s *Store) Defragment(context.Context) error {
	return fmt.Errorf("defragment: %w: a store in files is compacted with its snapshots", store.ErrRefused)
}

// Behind is described in store.Repairer. Nothing but entries follows an entry: a journal holds no keys, and what is
// no entry keeps it from being opened.
func (s *Store) Behind(ctx context.Context, shard int, entry uint64) iter.Seq2[store.StoredKey, error] {
	return func(yield func(store.StoredKey, error) bool) {
		err := s.checkShard(shard)
		if err == nil {
			first, last := s.held(shard)
			_, err = s.read(ctx, shard, max(entry+1, first), last.Number, func(r store.Record, _ error) bool {
				return yield(store.StoredKey{
					Key:      entryKey(shard, r.Number),
					Entry:    r.Number,
					Revision: r.Revision,
					Data:     r.Data,
				}, nil)
			})
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(store.StoredKey{}, fmt.Errorf("read shard %d behind entry %d: %w", shard, entry, err))
		}
	}
}

// entryKey names an entry to people.
func entryKey(shard int, number uint64) string { return fmt.Sprintf("journal/%d/%016x", shard, number) }

// Foreign is described in store.Repairer. There are none: a journaler keeps shards of the cluster alone.
func (s *Store) Foreign(ctx context.Context) iter.Seq2[store.StoredKey, error] { return nothing(ctx) }

// Leaseless is described in store.Repairer. There are none: nobody but Join makes a session.
func (s *Store) Leaseless(ctx context.Context) iter.Seq2[store.StoredKey, error] { return nothing(ctx) }

// nothing yields the error of a context that has ended.
func nothing(ctx context.Context) iter.Seq2[store.StoredKey, error] {
	return func(yield func(store.StoredKey, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(store.StoredKey{}, err)
		}
	}
}

// Remove is described in store.Repairer. It always wraps store.ErrRefused: what Behind yields are entries, which leave
// a journal from the front alone.
func (s *Store) Remove(ctx context.Context, k store.StoredKey) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("remove %q: %w", k.Key, err)
	}
	return fmt.Errorf("remove %q: %w: no key of a store in files can be removed", k.Key, store.ErrRefused)
}
