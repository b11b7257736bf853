package engine

import (
	"context"

	"taskledger/events"
)

// withoutBus reports whether news of a shard cannot be expected over the bus.
func (fs *futures) withoutBus(shard int) bool {
	return fs.bus == nil || !fs.router.connected.Load() || fs.router.detoured[shard].Load()
}

// followJournal reads outcomes from the journal itself while the bus cannot bring them.
func (fs *futures) followJournal(shard int, from uint64) {
	s := &fs.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here || s.follow != nil || fs.store == nil || fs.ctx.Err() != nil || !fs.withoutBus(shard) || len(s.waiting) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(fs.ctx)
	s.follow = cancel
	fs.followers.Go(func() {
		for rec, err := range fs.store.Follow(ctx, shard, from) {
			if err != nil {
				fs.log.WarnContext(ctx, "journal cannot be followed, futures will ask", "shard", shard, "err", err)
				continue
			}
			if e, err := events.Decode(rec.Data); err == nil {
				fs.tellEntry(shard, e)
			}
		}
	})
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
