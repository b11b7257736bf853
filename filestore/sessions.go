package filestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"taskledger/store"
)

// membersEvery bounds the time after which the members are told again though nothing has changed.
const membersEvery = 5 * time.Second

// Join is described in store.Sessions.
func (s *Store) Join(ctx context.Context, info store.NodeInfo, ttl time.Duration) (store.Session, error) {
	id := store.SessionID(info.Name, strings.ToLower(rand.Text()[:store.DrawnInID]))
	if err := s.write(ctx, s.reserve); err != nil {
		return store.Session{}, fmt.Errorf("join as %s: %w", id, err)
	}
	s.lock()
	defer s.mu.Unlock()
	if lacks := info.Reads.Lacks(s.notes.Written.told()); lacks != "" {
		return store.Session{}, fmt.Errorf("join as %s: %w: it cannot read %s", id, store.ErrOutdated, lacks)
	}
	revision := s.changeMembers()
	s.sessions[id] = &session{
		info:     copied(info),
		lease:    revision,
		created:  revision,
		modified: revision,
		ttl:      ttl,
		ends:     time.Now().Add(ttl),
	}
	return store.Session{ID: id, Lease: revision, Revision: revision}, nil
}

// copied returns a copy that shares nothing.
func copied(n store.NodeInfo) store.NodeInfo {
	n.Behaviors = slices.Clone(n.Behaviors)
	n.Limits = maps.Clone(n.Limits)
	n.Load = bytes.Clone(n.Load)
	return n
}

// Renew is described in store.Sessions. It writes nothing, and fails all the same once nothing is written any more: so
// a node that is idle learns it, too.
func (s *Store) Renew(ctx context.Context, o store.Session) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("renew session %s: %w", o.ID, err)
	}
	if err := s.failed(); err != nil {
		return fmt.Errorf("renew session %s: %w", o.ID, err)
	}
	s.lock()
	defer s.mu.Unlock()
	if !s.alive(o) {
		return fmt.Errorf("renew session %s: %w", o.ID, store.ErrSessionEnded)
	}
	n := s.sessions[o.ID]
	n.ends = time.Now().Add(n.ttl)
	return nil
}

// Update is described in store.Sessions.
func (s *Store) Update(ctx context.Context, o store.Session, info func() store.NodeInfo) error {
	for done := false; !done; {
		if err := s.write(ctx, s.reserve); err != nil {
			return fmt.Errorf("update session %s: %w", o.ID, err)
		}
		seen, err := s.modified(o)
		if err == nil {
			done, err = s.replace(o, seen, info())
		}
		if err != nil {
			return fmt.Errorf("update session %s: %w", o.ID, err)
		}
	}
	return nil
}

func (s *Store) modified(o store.Session) (int64, error) {
	s.lock()
	defer s.mu.Unlock()
	if !s.alive(o) {
		return 0, store.ErrSessionEnded
	}
	return s.sessions[o.ID].modified, nil
}

// replace sets what a session tells, unless that was changed since seen.
func (s *Store) replace(o store.Session, seen int64, info store.NodeInfo) (bool, error) {
	s.lock()
	defer s.mu.Unlock()
	if !s.alive(o) {
		return false, store.ErrSessionEnded
	}
	n := s.sessions[o.ID]
	if n.modified != seen {
		return false, nil
	}
	n.info, n.modified = copied(info), s.changeMembers()
	return true, nil
}

// Leave is described in store.Sessions.
func (s *Store) Leave(ctx context.Context, o store.Session) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("leave session %s: %w", o.ID, err)
	}
	s.lock()
	defer s.mu.Unlock()
	if s.alive(o) {
		s.end(o.ID)
	}
	return nil
}

// Raise is described in store.Sessions.
func (s *Store) Raise(ctx context.Context, need store.Reads) error {
	raised := false
	err := s.write(ctx, func() error {
		if err := s.reserve(); err != nil {
			return err
		}
		return s.note(func(n *notes) *notes {
			written := storedReads(n.Written.told().With(need))
			if raised = written != n.Written; !raised {
				return nil
			}
			next := *n
			next.Written = written
			return &next
		})
	})
	if err != nil {
		return fmt.Errorf("raise what may be written: %w", err)
	}
	if !raised {
		return nil
	}
	s.lock()
	defer s.mu.Unlock()
	s.changeMembers()
	return nil
}

// ReadMembers is described in store.Members.
func (s *Store) ReadMembers(ctx context.Context) (store.Membership, error) {
	if err := ctx.Err(); err != nil {
		return store.Membership{}, fmt.Errorf("read members: %w", err)
	}
	s.lock()
	defer s.mu.Unlock()
	return s.members(), nil
}

// members returns a copy of the membership. The caller holds mu.
func (s *Store) members() store.Membership {
	m := store.Membership{
		Revision: s.revision,
		Nodes:    make(map[string]store.NodeInfo, len(s.sessions)),
		Owners:   maps.Clone(s.owners),
		Written:  s.notes.Written.told(),
	}
	for id, n := range s.sessions {
		info := copied(n.info)
		info.ID, info.Revision, info.Modified = id, n.created, n.modified
		m.Nodes[id] = info
	}
	return m
}

// WatchMembers is described in store.Members. It tells the members every 5 seconds at least.
func (s *Store) WatchMembers(ctx context.Context) iter.Seq2[store.Membership, error] {
	return func(yield func(store.Membership, error) bool) {
		for {
			s.lock()
			m, changed := s.members(), s.await(topic{of: ofMembers})
			until := membersEvery
			for _, n := range s.sessions {
				until = min(until, time.Until(n.ends))
			}
			s.mu.Unlock()
			if ctx.Err() != nil || !yield(m, nil) || !pause(ctx, changed, until) {
				return
			}
		}
	}
}
