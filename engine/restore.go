package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/projection"
)

// dropped reports that the first entry is no longer held anywhere, or never was.
func (r records) dropped(ctx context.Context, shard int) (bool, error) {
	_, err := r.Entry(ctx, shard, 1)
	if errors.Is(err, ErrTrimmed) {
		return true, nil
	}
	return false, err
}

// snapshots returns those that are kept of a shard, newest first.
func (r records) snapshots(ctx context.Context, shard int) ([]Snapshot, error) {
	p, err := r.store.Pointer(ctx, shard)
	if err != nil {
		return nil, fmt.Errorf("snapshot pointer of shard %d: %w", shard, err)
	}
	return p.Kept, nil
}

func (r records) stillKept(ctx context.Context, shard int, s Snapshot) bool {
	kept, err := r.snapshots(ctx, shard)
	return err != nil || slices.Contains(kept, s)
}

// restore reads a snapshot. It wraps events.ErrDamaged when it is not what the pointer says, ErrTrimmed when a part is gone.
func (r records) restore(ctx context.Context, shard int, s Snapshot) (*projection.Shard, error) {
	fail := func(err error) (*projection.Shard, error) {
		return nil, fmt.Errorf("snapshot of entry %d of shard %d: %w", s.Entry, shard, err)
	}
	restorer := projection.NewRestorer(shard)
	sums := sha256.New()
	for part, err := range r.store.Parts(ctx, shard, s) {
		if err != nil {
			return fail(err)
		}
		sum := sha256.Sum256(part)
		sums.Write(sum[:])
		if err := restorer.Add(part); err != nil {
			return fail(fmt.Errorf("%w: %w", events.ErrDamaged, err))
		}
	}
	state, err := restorer.Done()
	if err == nil && (events.Hash(sums.Sum(nil)) != s.Hash || state.Number != s.Entry) {
		err = errors.New("it is not the one that the pointer names")
	}
	if err != nil {
		return fail(fmt.Errorf("%w: %w", events.ErrDamaged, err))
	}
	return state, nil
}

// beginning returns the state that the entries still held go on from: that of no entry, or, where the first ones were
// dropped, the older snapshot.
func (r records) beginning(ctx context.Context, shard int) (*projection.Shard, error) {
	dropped, err := r.dropped(ctx, shard)
	if err != nil {
		return nil, err
	}
	kept, err := r.snapshots(ctx, shard)
	if err != nil || !dropped || len(kept) == 0 {
		return projection.NewShard(shard), err
	}
	return r.restore(ctx, shard, kept[len(kept)-1])
}
