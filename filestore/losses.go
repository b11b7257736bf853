package filestore

import (
	"context"
	"fmt"
	"slices"

	"taskledger/store"
)

// GiveUp is described in store.Losses.
func (s *Store) GiveUp(ctx context.Context, l store.Loss) error {
	err := s.checkShard(l.Shard)
	if err == nil {
		err = s.write(ctx, func() error {
			if err := s.reserve(); err != nil {
				return err
			}
			return s.noteOf(l.Shard, func(n *shardNotes) { n.Loss = s.revised(l) })
		})
	}
	if err != nil {
		return fmt.Errorf("give up what followed entry %d of shard %d: %w", l.Entry, l.Shard, err)
	}
	return nil
}

// revised returns what is stored of a loss, with the revision of a write.
func (s *Store) revised(l store.Loss) *loss {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &loss{
		Entry:    l.Entry,
		Hash:     l.Hash,
		Reason:   l.Reason,
		Revision: s.next(),
	}
}

// Loss is described in store.Losses.
func (s *Store) Loss(ctx context.Context, shard int) (store.Loss, error) {
	err := ctx.Err()
	if err == nil {
		err = s.checkShard(shard)
	}
	if err != nil {
		return store.Loss{}, fmt.Errorf("read what was given up of shard %d: %w", shard, err)
	}
	return s.loss(shard), nil
}

func (s *Store) loss(shard int) store.Loss {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.notes.of(shard).Loss
	if l == nil {
		return store.Loss{}
	}
	return store.Loss{
		Shard:    shard,
		Entry:    l.Entry,
		Hash:     l.Hash,
		Reason:   l.Reason,
		Revision: l.Revision,
	}
}

// Recover is described in store.Losses. The pointer is replaced first: a crash before the entry leaves the loss to the
// next owner, and no snapshot beyond the end. A loss that is left after its entry names the end no more.
func (s *Store) Recover(
	ctx context.Context, o store.Ownership, after store.Head, entry []byte, l store.Loss, left store.SnapshotPointer,
) (int64, error) {
	var revision int64
	err := s.inTurn(ctx, o, func(at *shard) (err error) {
		revision, err = s.recover(o, at, after, entry, l, left)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("record in entry %d of shard %d what was lost: %w", after.Number+1, o.Shard, err)
	}
	return revision, nil
}

func (s *Store) recover(
	o store.Ownership, at *shard, after store.Head, entry []byte, l store.Loss, left store.SnapshotPointer,
) (int64, error) {
	if l.Revision <= 0 || l.Shard != o.Shard {
		return 0, fmt.Errorf("%w: no loss of the shard", store.ErrRefused)
	}
	s.lock()
	fenced, now := s.fenced(o), s.notes.of(o.Shard)
	follows := after == at.last
	s.mu.Unlock()
	changed := now.Loss == nil || now.Loss.Revision != l.Revision ||
		left.Revision != 0 && now.Pointer.Revision != left.Revision && !now.Pointer.gone(left)
	switch {
	case fenced != nil || !follows:
		revision, err := s.verdict(o, at, after, entry, fenced)
		if err != nil {
			return 0, err
		}
		return revision, s.recorded(l, left, revision)
	case changed:
		return 0, fmt.Errorf("%w: the loss or the pointer has changed", store.ErrRefused)
	}
	kept := now.Pointer.only(left.Kept)
	if left.Revision != 0 {
		if err := s.noteOf(o.Shard, func(n *shardNotes) { n.Pointer = kept }); err != nil {
			return 0, err
		}
	}
	revision, err := s.append(o, at, after, entry)
	if err != nil {
		return 0, err
	}
	return revision, s.recorded(l, left, revision)
}

// recorded notes that a loss is recorded in an entry, of a revision, unless that was noted before.
func (s *Store) recorded(l store.Loss, left store.SnapshotPointer, revision int64) error {
	s.mu.Lock()
	now := s.notes.of(l.Shard)
	s.mu.Unlock()
	if now.Loss == nil || now.Loss.Revision != l.Revision {
		return nil
	}
	return s.noteOf(l.Shard, func(n *shardNotes) {
		n.Loss = nil
		if len(n.Pointer.Kept) > 0 && n.Pointer.Revision == left.Revision {
			n.Pointer.Revision = revision
		}
	})
}

// only returns the pointer to some of the snapshots that it keeps; the zero one where none is left.
func (p pointer) only(some []store.SnapshotInfo) pointer {
	next := pointer{Revision: p.Revision}
	for i, k := range p.Kept {
		if slices.Contains(some, k) {
			next.Kept, next.Slots = append(next.Kept, k), append(next.Slots, p.Slots[i])
		}
	}
	if len(next.Kept) == 0 {
		return pointer{}
	}
	return next
}

// gone reports whether the pointer was taken away as left asks, by a call that found no room for its entry then.
func (p pointer) gone(left store.SnapshotPointer) bool { return p.Revision == 0 && len(left.Kept) == 0 }

// Forget is described in store.Losses.
func (s *Store) Forget(ctx context.Context, l store.Loss) error {
	err := s.checkShard(l.Shard)
	if err == nil && l.Revision <= 0 {
		err = fmt.Errorf("%w: no loss", store.ErrRefused)
	}
	if err == nil {
		err = s.write(ctx, func() error {
			return s.noteOf(l.Shard, func(n *shardNotes) {
				if n.Loss != nil && n.Loss.Revision == l.Revision {
					n.Loss = nil
				}
			})
		})
	}
	if err != nil {
		return fmt.Errorf("forget what was given up of shard %d: %w", l.Shard, err)
	}
	return nil
}
