package engine

import (
	"context"
	"errors"
	"time"

	"taskledger/events"
	"taskledger/store"
)

// followAgain is how long after a journal could not be followed that is tried again.
const followAgain = 2 * time.Second

// withoutBus reports whether news of a shard cannot be expected over the bus.
func (fs *futures) withoutBus(shard int) bool {
	return fs.bus == nil || !fs.router.connected.Load() || fs.router.detoured[shard].Load()
}

// followJournal reads outcomes from the journal itself while the bus cannot bring them.
func (fs *futures) followJournal(shard int, from uint64) {
	s := &fs.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here || s.follow != nil || fs.journal == nil || fs.ctx.Err() != nil || !fs.withoutBus(shard) || len(s.waiting) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(fs.ctx)
	s.follow = cancel
	fs.followers.Go(func() { fs.follow(ctx, shard, from) })
}

// follow reads a journal from an entry on until ctx ends. Where it is refused it goes on later: who waits asks less and less
// often. Of what was trimmed before it was read only the owner can tell, so then all ask, and an answer begins anew.
func (fs *futures) follow(ctx context.Context, shard int, next uint64) {
	var failing complaint
	for ctx.Err() == nil {
		trimmed := false
		for rec, err := range fs.journal.Follow(ctx, shard, next) {
			if failing.begins(err) {
				fs.log.WarnContext(ctx, "journal cannot be followed, futures will ask", "shard", shard, "err", err)
			}
			if err != nil {
				trimmed = errors.Is(err, store.ErrTrimmed)
				continue
			}
			e, err := events.Decode(rec.Data)
			if err != nil || e.Number != rec.Number || int(e.Shard) != shard {
				break // it is removed, perhaps, and the entry of that number comes in its place
			}
			next = rec.Number + 1
			fs.tellEntry(shard, e)
		}
		select {
		case <-ctx.Done():
		case <-time.After(followAgain):
		}
		if trimmed && fs.forgetFollow(ctx, shard) {
			fs.askAll(shard)
			return
		}
	}
}

// forgetFollow lets a journal be followed anew. It reports false when the follower whose context is ctx was ended meanwhile.
func (fs *futures) forgetFollow(ctx context.Context, shard int) bool {
	s := &fs.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	s.follow()
	s.follow = nil
	return true
}

// tellEntry lets the futures of the tasks that ended in an entry ask.
func (fs *futures) tellEntry(shard int, e *events.Entry) {
	s := &fs.shards[shard]
	for i := range e.Events {
		ev := &e.Events[i]
		switch ev.Body.(type) {
		case *events.Succeeded, *events.Failed, *events.Deleted, *events.Rescheduled:
			var concerned []*Future
			s.mu.Lock()
			for f := s.waiting[ev.Task]; f != nil; f = f.next {
				concerned = append(concerned, f)
			}
			s.mu.Unlock()
			for _, f := range concerned {
				fs.ask(f)
			}
		}
	}
}

// endFollow stops following a journal that nobody waits for, or whose news come over the bus again.
func (fs *futures) endFollow(shard int) {
	s := &fs.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follow != nil && (s.here || len(s.waiting) == 0 || !fs.withoutBus(shard)) {
		s.follow()
		s.follow = nil
	}
}
