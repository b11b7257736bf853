package filestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/filestore/journal"
	"taskledger/store"
)

const (
	// maxPartsBytes bounds the parts of a shard that were put and not published.
	maxPartsBytes = 1 << 30
	// maxValueBytes bounds an entry, a part of a snapshot, a batch and an answer.
	maxValueBytes = 1536 << 10
	// maxMailBytes bounds the batches and answers that wait, all together.
	maxMailBytes = 256 << 20
	// revisionBlock counts the revisions that are reserved at a time. More are reserved when half of them are used.
	revisionBlock = 1 << 20
	// fullPause is the time after which a write is tried again for which there was no room.
	fullPause = 250 * time.Millisecond
)

// Store is a store.Store of one process on a Journaler. Its methods may be called concurrently.
type Store struct {
	journal journal.Journaler
	lossy   journal.Lossy // nil: what was answered is never lost
	cluster store.Cluster
	quota   int64
	close   func() error // of what this store has opened itself
	durable string       // durability of its files; "" = not known
	shards  []*shard
	waiting atomic.Int64 // counts the writes for which there is no room yet

	noting sync.Mutex // taken by one change of the notes at a time, after the turn of a shard and before mu

	mu       sync.Mutex
	notes    *notes // replaced, never changed
	revision int64  // of the last write
	broken   error  // of a write that nobody knows the outcome of
	sessions map[string]*session
	owners   map[int]store.Owner
	joined   int64 // revision of the last change of the members
	batches  map[box]posted
	answers  map[box]posted
	mail     int // bytes of the boxes of batches and answers
	maxMail  int // bounds mail
	topics   map[topic]chan struct{}
}

var _ store.Store = (*Store)(nil)

// shard holds what the store knows of a shard beside its notes.
type shard struct {
	// publishing is taken by one snapshot at a time, which is written while others have their turns. It is taken before
	// turn, and guards told.
	publishing sync.Mutex
	told       uint64 // the first entry that is needed, as the journaler knows it from this process; 0 = not from this one
	// turn is taken by one write of the shard at a time. What it leads to is seen by the next one.
	turn  sync.Mutex
	parts map[partKey][]byte // of one snapshot that is not published yet; guarded by turn, like put
	put   int64              // bytes of the parts
	last  store.Head         // guarded by mu of the store, like sizes and bytes
	sizes []uint32           // of the entries that the journal holds, the first one that was not trimmed first
	bytes int64              // of all of these
}

// partKey names a part of a snapshot that is not published yet.
type partKey struct {
	entry uint64
	epoch int64
	part  int
}

// session is the presence of a node.
type session struct {
	info     store.NodeInfo
	lease    int64
	created  int64 // revision
	modified int64 // revision
	ttl      time.Duration
	ends     time.Time
}

// box names what is posted under one key of the mailbox: a batch for a shard, or an answer from it.
type box struct {
	shard  int
	sender string
	lane   uint8
}

// posted holds what was put into a box.
type posted struct {
	revision int64
	data     []byte
}

// topic names what a watch waits for.
type topic struct {
	of     subject
	shard  int
	sender string
}

type subject uint8

const (
	ofJournal subject = iota
	ofMembers
	ofBatches
	ofAnswers
)

// Cluster implements store.Store.
func (s *Store) Cluster() store.Cluster { return s.cluster }

// Durability returns the durability of the files, as filejournal names it; "" of a store that Open has not opened.
func (s *Store) Durability() string { return s.durable }

// lock locks the store and ends the sessions whose time is over.
func (s *Store) lock() {
	s.mu.Lock()
	now := time.Now()
	for id, n := range s.sessions {
		if !now.Before(n.ends) {
			s.end(id)
		}
	}
}

// end ends a session.
func (s *Store) end(id string) {
	delete(s.sessions, id)
	s.changeMembers()
}

// changeMembers gives a change of the members a revision and tells of it.
func (s *Store) changeMembers() int64 {
	s.joined = s.next()
	s.tell(topic{of: ofMembers})
	return s.joined
}

// next returns the revision of a write. Far fewer are used at a time than reserve leaves.
func (s *Store) next() int64 {
	s.revision++
	return s.revision
}

// await returns a channel that is closed when something happens.
func (s *Store) await(t topic) <-chan struct{} {
	c := s.topics[t]
	if c == nil {
		c = make(chan struct{})
		s.topics[t] = c
	}
	return c
}

// tell wakes those who wait for something.
func (s *Store) tell(t topic) {
	if c := s.topics[t]; c != nil {
		close(c)
		delete(s.topics, t)
	}
}

// forget drops a topic when a caller stops waiting for it. Callers that still wait look once more.
func (s *Store) forget(t topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(t)
}

// pause waits until something happens, for a time, or until ctx ends, which it reports by false.
func pause(ctx context.Context, happens <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-happens:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

func (s *Store) checkShard(shard int) error {
	if shard < 0 || shard >= s.cluster.Shards {
		return fmt.Errorf("%w: there is no shard %d", store.ErrRefused, shard)
	}
	return nil
}

// checkValue refuses what is larger than the store takes.
func checkValue(data []byte) error {
	if len(data) > maxValueBytes {
		return fmt.Errorf("%w: %w: %d bytes exceed the limit of %d",
			store.ErrRefused, store.ErrTooLarge, len(data), maxValueBytes)
	}
	return nil
}

// checkOwnership refuses what can be none.
func (s *Store) checkOwnership(o store.Ownership) error {
	if o.Revision <= 0 || o.Session.Lease == 0 {
		return fmt.Errorf("%w: not an ownership", store.ErrFenced)
	}
	return s.checkShard(o.Shard)
}

// fenced returns an error unless the ownership holds. The caller holds mu.
func (s *Store) fenced(o store.Ownership) error {
	owner := s.owners[o.Shard]
	if owner.Revision != o.Revision || owner.Node != o.Session.ID {
		return fmt.Errorf("%w: the owner has changed", store.ErrFenced)
	}
	if !s.alive(o.Session) {
		return fmt.Errorf("%w: session %s is gone", store.ErrFenced, o.Session.ID)
	}
	return nil
}

// alive reports whether a session has not ended. The caller holds mu.
func (s *Store) alive(o store.Session) bool {
	n := s.sessions[o.ID]
	return n != nil && o.Lease != 0 && n.lease == o.Lease
}

// write makes a write of the journaler, and again while there is no room for it and ctx goes on. The store counts as
// full meanwhile and no longer: a caller that goes away leaves nobody who would find that there is room again. Of a
// write that nobody knows the outcome of, it makes the last one: from then on it wraps store.ErrBroken.
func (s *Store) write(ctx context.Context, make func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	err := s.writeOnce(make)
	if !errors.Is(err, journal.ErrFull) {
		return err
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	for errors.Is(err, journal.ErrFull) {
		if !pause(ctx, nil, fullPause) || ctx.Err() != nil {
			return fmt.Errorf("%w: %w; last answer: %w", store.ErrFull, ctx.Err(), err)
		}
		err = s.writeOnce(make)
	}
	return err
}

// failed returns why nothing is written any more, also where the journaler has found that by itself.
func (s *Store) failed() error {
	var found error
	if s.lossy != nil {
		found = s.lossy.Failed()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil && found != nil {
		s.broken = fmt.Errorf("%w: %w", store.ErrBroken, found)
	}
	return s.broken
}

func (s *Store) writeOnce(make func() error) error {
	if err := s.failed(); err != nil {
		return err
	}
	err := make()
	if _, written := errors.AsType[*journalError](err); written && !errors.Is(err, journal.ErrFull) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.broken = fmt.Errorf("%w: %w", store.ErrBroken, err)
		return s.broken
	}
	return err
}

// journalError is the error of a write of the journaler.
type journalError struct{ err error }

func (e *journalError) Error() string { return e.err.Error() }
func (e *journalError) Unwrap() error { return e.err }

func ofJournaler(err error) error {
	if err == nil {
		return nil
	}
	return &journalError{err}
}

// Close ends the use of the store, and of the journaler where Open has opened that. Nodes and clients of it must have
// ended.
func (s *Store) Close() error { return s.close() }
