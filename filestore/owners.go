package filestore

import (
	"context"
	"fmt"

	"taskledger/store"
)

// Take is described in store.Owners.
func (s *Store) Take(ctx context.Context, o store.Session, shard int, seen store.Owner) (store.Ownership, error) {
	revision, err := s.take(ctx, o, shard, seen)
	if err != nil {
		return store.Ownership{}, fmt.Errorf("take shard %d: %w", shard, err)
	}
	return store.Ownership{Shard: shard, Revision: revision, Session: o}, nil
}

func (s *Store) take(ctx context.Context, o store.Session, shard int, seen store.Owner) (int64, error) {
	if err := s.checkShard(shard); err != nil {
		return 0, err
	}
	if o.Lease == 0 {
		return 0, fmt.Errorf("%w: not a session", store.ErrFenced)
	}
	if seen.Node != "" && seen.Revision == 0 {
		return 0, fmt.Errorf("%w: owner %q cannot have revision 0", store.ErrRefused, seen.Node)
	}
	if err := s.write(ctx, s.reserve); err != nil {
		return 0, err
	}
	s.shards[shard].turn.Lock()
	defer s.shards[shard].turn.Unlock()
	s.lock()
	defer s.mu.Unlock()
	now := s.owners[shard]
	switch {
	case !s.alive(o):
		return 0, fmt.Errorf("%w: session %s is gone", store.ErrFenced, o.ID)
	case now.Node == o.ID && now.Revision > seen.Revision:
		return now.Revision, nil // it was taken before
	case now != seen:
		return 0, fmt.Errorf("%w: the owner has changed", store.ErrFenced)
	case now.Node != "" && s.sessions[now.Node] != nil:
		return 0, fmt.Errorf("%w: owner %q is alive", store.ErrFenced, now.Node)
	}
	return s.own(shard, o.ID), nil
}

// own makes a session the owner of a shard, which publishes no snapshot of another one. The caller holds its turn and
// mu.
func (s *Store) own(shard int, id string) int64 {
	s.shards[shard].drop()
	revision := s.changeMembers()
	s.owners[shard] = store.Owner{Node: id, Revision: revision}
	return revision
}

// HandOver is described in store.Owners.
func (s *Store) HandOver(ctx context.Context, o store.Ownership, target string) error {
	if err := s.handOver(ctx, o, target); err != nil {
		return fmt.Errorf("hand shard %d over to %s: %w", o.Shard, target, err)
	}
	return nil
}

func (s *Store) handOver(ctx context.Context, o store.Ownership, target string) error {
	if o.Revision <= 0 {
		return fmt.Errorf("%w: not an ownership", store.ErrFenced)
	}
	if err := s.checkShard(o.Shard); err != nil {
		return err
	}
	if err := s.write(ctx, s.reserve); err != nil {
		return err
	}
	s.shards[o.Shard].turn.Lock()
	defer s.shards[o.Shard].turn.Unlock()
	s.lock()
	defer s.mu.Unlock()
	now := s.owners[o.Shard]
	switch {
	case now.Node == target && now.Revision > o.Revision:
		return nil // it was handed over before
	case now.Revision != o.Revision:
		return fmt.Errorf("%w: the owner has changed", store.ErrFenced)
	case s.sessions[target] == nil:
		return fmt.Errorf("%w: the target has left", store.ErrFenced)
	}
	s.own(o.Shard, target)
	return nil
}
