package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// dropped reports whether the first entry is in neither journal nor archive: it was removed, or never written.
func (r *Reader) dropped(ctx context.Context, shard int) (bool, error) {
	_, err := r.Entry(ctx, shard, 1)
	if errors.Is(err, store.ErrTrimmed) {
		return true, nil
	}
	return false, err
}

// kept returns the snapshots of a shard that the store keeps, newest first.
func (r *Reader) kept(ctx context.Context, shard int) ([]store.SnapshotInfo, error) {
	p, err := r.snapshots.Pointer(ctx, shard)
	if err != nil {
		return nil, fmt.Errorf("snapshot pointer of shard %d: %w", shard, err)
	}
	return p.Kept, nil
}

func (r *Reader) stillKept(ctx context.Context, shard int, s store.SnapshotInfo) bool {
	kept, err := r.kept(ctx, shard)
	return err != nil || slices.Contains(kept, s)
}

// Restore reads a snapshot. It wraps events.ErrDamaged if the snapshot is not what the pointer says, and
// store.ErrTrimmed if a part of it is gone.
func (r *Reader) Restore(ctx context.Context, shard int, s store.SnapshotInfo) (*projection.Shard, error) {
	fail := func(err error) (*projection.Shard, error) {
		return nil, fmt.Errorf("snapshot of entry %d of shard %d: %w", s.Entry, shard, err)
	}
	restorer := projection.NewRestorer(shard)
	hash, err := r.sum(ctx, shard, s, restorer.Add)
	if err != nil {
		return fail(err)
	}
	state, err := restorer.Done()
	if err == nil && (hash != s.Hash || state.Number != s.Entry) {
		err = errOther
	}
	if err != nil {
		return fail(fmt.Errorf("%w: %w", events.ErrDamaged, err))
	}
	return state, nil
}

var errOther = errors.New("it is not the one that the pointer names")

// sum calls each for every part of a snapshot, and returns the hash of all.
func (r *Reader) sum(
	ctx context.Context,
	shard int,
	s store.SnapshotInfo,
	each func(part []byte) error,
) (events.Hash, error) {
	sums := sha256.New()
	for part, err := range r.snapshots.Parts(ctx, shard, s) {
		if err != nil {
			return events.Hash{}, err
		}
		sum := sha256.Sum256(part)
		sums.Write(sum[:])
		if err := each(part); err != nil {
			return events.Hash{}, fmt.Errorf("%w: %w", events.ErrDamaged, err)
		}
	}
	return events.Hash(sums.Sum(nil)), nil
}

// Intact returns an error if a snapshot is not stored as it was made. It wraps events.ErrDamaged, or store.ErrTrimmed
// if a part of it is gone.
func (r *Reader) Intact(ctx context.Context, shard int, s store.SnapshotInfo) error {
	hash, err := r.sum(ctx, shard, s, func([]byte) error { return nil })
	if err == nil && hash != s.Hash {
		err = fmt.Errorf("%w: %w", events.ErrDamaged, errOther)
	}
	if err != nil {
		return fmt.Errorf("snapshot of entry %d of shard %d: %w", s.Entry, shard, err)
	}
	return nil
}

// beginning returns the state that the entries that are left continue: the empty one, or, if the first entries were
// dropped, the older snapshot.
func (r *Reader) beginning(ctx context.Context, shard int) (*projection.Shard, error) {
	dropped, err := r.dropped(ctx, shard)
	if err != nil {
		return nil, err
	}
	kept, err := r.kept(ctx, shard)
	if err != nil || !dropped || len(kept) == 0 {
		return projection.NewShard(shard), err
	}
	return r.Restore(ctx, shard, kept[len(kept)-1])
}
