package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/projection"
)

const (
	// snapshotTurn bounds how long an owner works on a snapshot between two entries.
	snapshotTurn = 500 * time.Microsecond
	// snapshotTasks is how many tasks are encoded between two looks at the clock.
	snapshotTasks = 256
	// maxWaitingParts bounds the parts that wait to be stored. What changes meanwhile is kept beyond it.
	maxWaitingParts = 16
	// minTail and maxTail bound the tail of a journal that makes a new snapshot due, in bytes: between them it is a share
	// of the store's quota. A snapshot that is larger than that waits for a tail of its own size.
	minTail = 1 << 20
	maxTail = 8 << 20
	// tailShare is that share, of a shard's part of the quota.
	tailShare = 16
	// snapshotRetry is the pause after a snapshot that could not be stored; doubled with each that follows, up to slowRetry.
	snapshotRetry = 5 * time.Second
	slowRetry     = 5 * time.Minute
)

// snapshots stores, beside a shard's owner, the snapshots that the owner takes: part by part, then the pointer. The owner
// hands parts over and never waits for it.
type snapshots struct {
	o    *owner
	wake chan struct{}

	doubt bool // of run alone: whether the last one was published is not known

	mu      sync.Mutex
	damaged []Snapshot      // that this owner could not read
	pointer SnapshotPointer // as this owner knows it, without the damaged ones
	entry   uint64          // of the snapshot that is being taken; 0 = none
	waiting [][]byte        // parts to store
	whole   bool            // no part follows
	failed  bool            // the owner gives it up
	pause   time.Duration   // after the last failure; 0 = the last one succeeded
	retry   time.Time       // not before
	problem string          // of the last failure
}

func newSnapshots(o *owner, have *loaded) *snapshots {
	return &snapshots{o: o, pointer: have.pointer, damaged: have.damaged, wake: make(chan struct{}, 1)}
}

// leaveOut lets a damaged snapshot count no more: the next one that is published takes its place.
func (s *snapshots) leaveOut(damaged Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damaged = append(s.damaged, damaged)
	s.pointer = s.pointer.without(s.damaged)
}

// kept returns the pointer as this owner knows it.
func (s *snapshots) kept() SnapshotPointer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pointer
}

// trouble is why the last snapshot was given up; "" = it was not.
func (s *snapshots) trouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// due reports whether a tail of so many bytes asks for a snapshot now.
func (s *snapshots) due(tail, quota int64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	long := min(max(quota/int64(tailShare*s.o.m.cfgShards()), minTail), maxTail)
	if len(s.pointer.Kept) > 0 {
		long = max(long, s.pointer.Kept[0].Bytes)
	}
	return tail >= long && s.entry == 0 && !now.Before(s.retry)
}

// begin expects the parts of a snapshot.
func (s *snapshots) begin(entry uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry, s.waiting, s.whole, s.failed = entry, nil, false, false
}

// wants reports whether more parts may come now; failed that none ever will be stored.
func (s *snapshots) wants() (more, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) < maxWaitingParts, s.failed
}

// add hands parts over.
func (s *snapshots) add(parts [][]byte, whole bool) {
	if len(parts) == 0 && !whole {
		return
	}
	s.mu.Lock()
	s.waiting, s.whole = append(s.waiting, parts...), whole
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next takes out the parts that wait.
func (s *snapshots) next() (entry uint64, parts [][]byte, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts, s.waiting = s.waiting, nil
	return s.entry, parts, s.whole
}

// run stores what comes until ctx ends.
func (s *snapshots) run(ctx context.Context) {
	var made Snapshot
	sums := sha256.New()
	for {
		var again <-chan time.Time
		if s.doubt {
			again = time.After(snapshotRetry)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
			if err := s.look(ctx); err != nil && ctx.Err() == nil {
				s.o.log.WarnContext(ctx, "whether the last snapshot counts is not known yet", "err", err)
			}
			continue
		case <-s.wake:
		}
		entry, parts, whole := s.next()
		if entry == 0 {
			continue
		}
		if made.Entry != entry {
			made = Snapshot{Entry: entry, Epoch: s.o.ownership.Revision}
			sums.Reset()
		}
		err := s.store(ctx, &made, parts, sums.Write)
		if err == nil && whole {
			sums.Sum(made.Hash[:0])
			err = s.publish(ctx, made)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.giveUp(err)
		} else if whole {
			s.o.trims.ring()
		}
		s.o.inbox.ring() // there is room for more, or nothing more to do
	}
}

func (s *snapshots) store(ctx context.Context, made *Snapshot, parts [][]byte, sum func([]byte) (int, error)) error {
	ctx, cancel := context.WithTimeout(ctx, max(s.o.m.ttl, time.Duration(len(parts))*time.Second))
	defer cancel()
	for _, part := range parts {
		begun := time.Now()
		if err := s.o.m.store.PutPart(ctx, s.o.ownership, made.Entry, made.Parts, part); err != nil {
			return fmt.Errorf("store part %d: %w", made.Parts, err)
		}
		digest := sha256.Sum256(part)
		if _, err := sum(digest[:]); err != nil {
			return err
		}
		made.Parts++
		made.Bytes += int64(len(part))
		select { // leave as much time to the entries of all shards
		case <-time.After(time.Since(begun)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// publish makes a stored snapshot count.
func (s *snapshots) publish(ctx context.Context, made Snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.m.ttl)
	defer cancel()
	if s.doubt {
		if err := s.look(ctx); err != nil {
			return err
		}
	}
	pointer, err := s.o.m.store.Publish(ctx, s.o.ownership, s.kept(), made)
	if s.doubt = err != nil; s.doubt {
		return fmt.Errorf("publish: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pointer, s.entry, s.pause, s.problem = pointer, 0, 0, ""
	return nil
}

// look reads the pointer again: the snapshot before may have been published although nobody heard of it.
func (s *snapshots) look(ctx context.Context) error {
	pointer, err := s.o.m.readPointer(ctx, s.o.ownership.Shard)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt, s.pointer = false, pointer.without(s.damaged)
	s.o.trims.ring()
	return nil
}

// giveUp lets the owner end the snapshot that is being taken. Its parts go with the next one that is published.
func (s *snapshots) giveUp(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.log.Warn("snapshot is given up; the journal grows until one succeeds", "entry", s.entry, "err", err)
	s.pause = min(max(2*s.pause, snapshotRetry), slowRetry)
	s.entry, s.waiting, s.failed, s.retry, s.problem = 0, nil, true, time.Now().Add(s.pause), err.Error()
}

// takeSnapshot works a little on the shard's snapshot, and begins one when the tail of the journal is long. It reports
// whether to go on at once. The state is that of a committed entry here, between two turns.
func (o *owner) takeSnapshot() bool {
	began := time.Now()
	more, failed := o.snapshots.wants()
	if failed && o.covers > 0 {
		o.tail, o.covers = o.tail+o.covers, 0
		if o.snapshot != nil {
			o.endSnapshot()
		}
	}
	if o.snapshot == nil {
		if o.head.Number == o.covered || !o.snapshots.due(o.tail, o.m.usage.Load().Quota, began) {
			return false
		}
		o.snapshot, o.covered = o.state.BeginSnapshot(), o.head.Number
		o.covers, o.tail = o.tail, 0
		o.snapshots.begin(o.head.Number)
	}
	for ; more; more, failed = o.snapshots.wants() {
		if failed {
			return true // the next turn ends it
		}
		done := o.snapshot.Step(snapshotTasks)
		o.snapshots.add(o.snapshot.Parts(), done)
		if done {
			o.endSnapshot()
			return false
		}
		if time.Since(began) > snapshotTurn {
			return true
		}
	}
	return false // it rings when it has stored some
}

func (o *owner) endSnapshot() {
	o.snapshot.End()
	o.snapshot = nil
}

// loaded is a shard's state after the entry head, and what is to be known to go on from there.
type loaded struct {
	state   *projection.Shard
	head    Head
	pointer SnapshotPointer // without the damaged ones
	damaged []Snapshot      // that could not be read
	tail    int64           // bytes of the entries after the newest snapshot
}

// pointTo takes over a pointer, less what is known to be damaged: no trim may rely on that, and the next snapshot to be
// published takes its place.
func (l *loaded) pointTo(p SnapshotPointer) { l.pointer = p.without(l.damaged) }

func (p SnapshotPointer) without(damaged []Snapshot) SnapshotPointer {
	p.Kept = slices.DeleteFunc(slices.Clone(p.Kept), func(s Snapshot) bool { return slices.Contains(damaged, s) })
	return p
}

// loadShard reads the newest snapshot of a shard that can be read, and the journal from there. Snapshots that cannot be read are
// passed over: the one before, or all entries from the first on, lead to the same state.
func (m *member) loadShard(ctx context.Context, shard int) (*loaded, error) {
	for {
		pointer, err := m.readPointer(ctx, shard)
		if err != nil {
			return nil, err
		}
		have, err := m.loadFrom(ctx, shard, pointer)
		if !errors.Is(err, ErrTrimmed) {
			return have, err
		}
		again, unread := m.readPointer(ctx, shard)
		if unread != nil {
			return nil, unread
		}
		if again.Revision != pointer.Revision {
			continue // newer snapshots have taken the place of those
		}
		whole := m.records()
		if whole.archive == nil {
			return nil, fmt.Errorf("%w: no snapshot of shard %d can be read, and its journal does not begin at entry 1: %w", events.ErrDamaged, shard, err)
		}
		m.log.WarnContext(ctx, "no snapshot can be read, all entries are, from the archive on", "shard", shard)
		have = newLoaded(shard, pointer, pointer.Kept)
		if err := have.replay(whole.Read(ctx, shard, 1)); err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%w: no snapshot of shard %d can be read, nor all its entries: %w", events.ErrDamaged, shard, err)
		}
		return have, ctx.Err()
	}
}

// readPointer reads a shard's snapshot pointer. A damaged one points to nothing.
func (m *member) readPointer(ctx context.Context, shard int) (SnapshotPointer, error) {
	pointer, err := m.store.Pointer(ctx, shard)
	if errors.Is(err, events.ErrDamaged) {
		m.log.ErrorContext(ctx, "snapshot pointer cannot be read, the entries are", "shard", shard, "err", err)
		return SnapshotPointer{Revision: pointer.Revision}, nil
	}
	if err != nil {
		return pointer, fmt.Errorf("read snapshot pointer of shard %d: %w", shard, err)
	}
	return pointer, nil
}

// loadFrom reads the newest of the snapshots that can be read, and the journal from there, or the whole journal.
func (m *member) loadFrom(ctx context.Context, shard int, pointer SnapshotPointer) (*loaded, error) {
	var damaged []Snapshot
	for _, s := range pointer.Kept {
		have, err := m.restore(ctx, shard, s)
		switch {
		case err == nil:
			have.damaged = damaged
			have.pointTo(pointer)
			return have, m.replay(ctx, shard, have)
		case errors.Is(err, events.ErrDamaged), errors.Is(err, ErrTrimmed):
			m.log.ErrorContext(ctx, "snapshot cannot be read, an earlier state is", "shard", shard, "entry", s.Entry, "err", err)
			damaged = append(damaged, s)
		default:
			return nil, err
		}
	}
	have := newLoaded(shard, pointer, damaged)
	return have, m.replay(ctx, shard, have)
}

// newLoaded is a shard before its first entry.
func newLoaded(shard int, pointer SnapshotPointer, damaged []Snapshot) *loaded {
	l := &loaded{state: projection.NewShard(shard), damaged: damaged}
	l.pointTo(pointer)
	return l
}

// restore reads a snapshot and the entry that it is the state after.
func (m *member) restore(ctx context.Context, shard int, s Snapshot) (*loaded, error) {
	state, err := m.records().restore(ctx, shard, s)
	if err != nil {
		return nil, err
	}
	rec, err := m.store.Entry(ctx, shard, s.Entry)
	if err != nil {
		return nil, fmt.Errorf("read the entry of a snapshot: %w", err)
	}
	e, err := events.Decode(rec.Data)
	if err != nil {
		return nil, err
	}
	if state.Hash != e.Hash {
		return nil, fmt.Errorf("%w: snapshot of entry %d has hash %s, the journal %s", events.ErrDamaged, s.Entry, state.Hash, e.Hash)
	}
	return &loaded{state: state, head: rec.Head}, nil
}

// replay reads the journal behind the given state up to its end.
func (m *member) replay(ctx context.Context, shard int, have *loaded) error {
	return have.replay(m.store.Read(ctx, shard, have.head.Number+1))
}

func (l *loaded) replay(journal iter.Seq2[Record, error]) error {
	for rec, err := range journal {
		if err != nil {
			return fmt.Errorf("read journal after entry %d: %w", l.head.Number, err)
		}
		e, err := events.Decode(rec.Data)
		if err == nil {
			err = l.state.Replay(e)
		}
		if err != nil {
			return fmt.Errorf("replay entry %d: %w", rec.Number, err)
		}
		l.head, l.tail = rec.Head, l.tail+int64(len(rec.Data))
	}
	return nil
}
