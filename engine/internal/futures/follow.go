package futures

import (
	"context"
	"errors"
	"time"

	"taskledger/engine/internal/notice"
	"taskledger/events"
	"taskledger/store"
)

// followAgain is the pause before a journal that could not be followed is followed again.
const followAgain = 2 * time.Second

// followJournal reads outcomes from the journal itself while the bus cannot bring them.
func (r *Registry) followJournal(shard int, from uint64) {
	s := &r.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here || s.follow != nil || r.cfg.Journal == nil || r.ctx.Err() != nil ||
		!r.cfg.Sender.BusAway(shard) || len(s.waiting) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	s.follow = cancel
	r.followers.Go(func() { r.follow(ctx, shard, from) })
}

// follow reads a journal from an entry on until ctx ends. If reading fails it goes on later, since futures ask less
// and less often. Only the owner knows the outcomes in entries that were trimmed before they were read, so then all
// futures ask, and an answer makes follow begin anew.
func (r *Registry) follow(ctx context.Context, shard int, next uint64) {
	var failing notice.Onset
	for ctx.Err() == nil {
		trimmed := false
		for rec, err := range r.cfg.Journal.Follow(ctx, shard, next) {
			if failing.Begins(err) {
				r.cfg.Log.WarnContext(ctx, "journal cannot be followed, futures will ask", "shard", shard, "err", err)
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
			r.askAbout(shard, e)
		}
		select {
		case <-ctx.Done():
		case <-time.After(followAgain):
		}
		if trimmed && r.forgetFollow(ctx, shard) {
			r.AskAll(shard)
			return
		}
	}
}

// forgetFollow lets a journal be followed anew. It reports false when the follower whose context is ctx was ended
// meanwhile.
func (r *Registry) forgetFollow(ctx context.Context, shard int) bool {
	s := &r.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	s.follow()
	s.follow = nil
	return true
}

// askAbout makes the futures ask whose tasks ended in an entry.
func (r *Registry) askAbout(shard int, e *events.Entry) {
	s := &r.shards[shard]
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
				r.ask(f)
			}
		}
	}
}

// endFollow stops following a journal that no future waits for, or whose notifications come over the bus again.
func (r *Registry) endFollow(shard int) {
	s := &r.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follow != nil && (s.here || len(s.waiting) == 0 || !r.cfg.Sender.BusAway(shard)) {
		s.follow()
		s.follow = nil
	}
}
