package shard

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"taskledger/engine/internal/signal"
	"taskledger/store"
)

const (
	// maxWaitingParts bounds the parts that wait to be stored. What changes meanwhile is kept beyond it.
	maxWaitingParts = 16
	// MinTail and maxTail bound the tail of a journal that makes a new snapshot due, in bytes: between them it is a
	// share of the store's quota. A snapshot that is larger than that waits for a tail of its own size.
	MinTail = 1 << 20
	maxTail = 4 << 20
	// tailShare is that share, of a shard's part of the quota.
	tailShare = 16
	// snapshotRetry is the pause after a snapshot that could not be stored; doubled with each that follows, up to
	// slowRetry.
	snapshotRetry = 5 * time.Second
	slowRetry     = 5 * time.Minute
)

// snapshots stores, beside a shard's owner, the snapshots that the owner takes: part by part, then the pointer. The
// owner hands parts over and never waits for it.
type snapshots struct {
	cfg       *Config
	ownership store.Ownership
	log       *slog.Logger
	owner     signal.Signal // wakes the owner: there is room for parts
	trims     signal.Signal // wakes who trims: another snapshot counts
	wake      signal.Signal

	doubt bool // of run alone: whether the last one was published is not known

	mu      sync.Mutex
	damaged []store.SnapshotInfo  // that this owner could not read
	pointer store.SnapshotPointer // as this owner knows it, without the damaged ones
	entry   uint64                // of the snapshot that is being taken; 0 = none
	waiting [][]byte              // parts to store
	whole   bool                  // no part follows
	failed  bool                  // the owner gives it up
	pause   time.Duration         // after the last failure; 0 = the last one succeeded
	retry   time.Time             // not before
	problem string                // of the last failure
}

func newSnapshots(cfg *Config, o store.Ownership, log *slog.Logger, owner signal.Signal, have *Loaded) *snapshots {
	return &snapshots{
		cfg:       cfg,
		ownership: o,
		log:       log,
		owner:     owner,
		trims:     signal.New(),
		wake:      signal.New(),
		pointer:   have.pointer,
		damaged:   have.damaged,
	}
}

// leaveOut lets a damaged snapshot count no more: the next one that is published takes its place.
func (s *snapshots) leaveOut(damaged store.SnapshotInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damaged = append(s.damaged, damaged)
	s.pointer = s.pointer.Without(s.damaged)
}

// leave says that the pointer was written anew, with the snapshots that this owner knows of, or removed where it
// knows of none.
func (s *snapshots) leave(revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pointer.Revision = revision; len(s.pointer.Kept) == 0 {
		s.pointer.Revision = 0
	}
}

// current returns the pointer as this owner knows it.
func (s *snapshots) current() store.SnapshotPointer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pointer
}

// trouble returns why the last snapshot was given up; "" = it was not.
func (s *snapshots) trouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// due reports whether a tail of so many bytes asks for a snapshot now.
func (s *snapshots) due(tail, quota int64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	long := min(max(quota/int64(tailShare*s.cfg.Shards), MinTail), maxTail)
	if len(s.pointer.Kept) > 0 {
		long = max(long, s.pointer.Kept[0].Bytes)
	} else { // shards that begin together and grow alike would take all their snapshots at once, for ever
		long = long * int64(s.ownership.Shard+1) / int64(s.cfg.Shards)
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
	s.wake.Notify()
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
	var made store.SnapshotInfo
	sums := sha256.New()
	var retry <-chan time.Time // of what was given up, when nothing else may happen in the shard
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
				s.log.WarnContext(ctx, "whether the last snapshot counts is not known yet", "err", err)
			}
			continue
		case <-retry:
			s.owner.Notify()
			continue
		case <-s.wake:
		}
		entry, parts, whole := s.next()
		if entry == 0 {
			continue
		}
		if made.Entry != entry {
			made = store.SnapshotInfo{Entry: entry, Epoch: s.ownership.Revision}
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
			s.giveUp(entry, err)
			retry = time.After(s.pause)
		} else if whole {
			s.trims.Notify()
		}
		s.owner.Notify() // there is room for more, or nothing more to do
	}
}

func (s *snapshots) store(
	ctx context.Context,
	made *store.SnapshotInfo,
	parts [][]byte,
	sum func([]byte) (int, error),
) error {
	ctx, cancel := context.WithTimeout(ctx, max(s.cfg.TTL, time.Duration(len(parts))*time.Second))
	defer cancel()
	for _, part := range parts {
		begun := time.Now()
		if err := s.cfg.Loader.Snapshots.PutPart(ctx, s.ownership, made.Entry, made.Parts, part); err != nil {
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
func (s *snapshots) publish(ctx context.Context, made store.SnapshotInfo) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.TTL)
	defer cancel()
	if s.doubt {
		if err := s.look(ctx); err != nil {
			return err
		}
	}
	pointer, err := s.cfg.Loader.Snapshots.Publish(ctx, s.ownership, s.current(), made)
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
	pointer, err := s.cfg.Loader.Pointer(ctx, s.ownership.Shard)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt, s.pointer = false, pointer.Without(s.damaged)
	s.trims.Notify()
	return nil
}

// giveUp lets the owner end the snapshot that is being taken. Its parts go with the next one that is published.
func (s *snapshots) giveUp(entry uint64, err error) {
	s.mu.Lock()
	s.pause = min(max(2*s.pause, snapshotRetry), slowRetry)
	s.entry, s.waiting, s.failed, s.retry, s.problem = 0, nil, true, time.Now().Add(s.pause), err.Error()
	s.mu.Unlock()
	s.log.Warn("snapshot is given up; the journal grows until one succeeds", "entry", entry, "err", err)
}
