package sender

import (
	"context"
	"errors"
	"strconv"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/liveness"
)

// Subject returns the subject on which batches reach the owner of a shard.
func Subject(shard int) string { return "shard." + strconv.Itoa(shard) }

// Dispatch sends a flight the best way there is now.
func (s *Sender) Dispatch(f *Flight) {
	if here, ok := s.owners.Load(f.Shard); ok {
		if in := here.(Inbox); s.leaves(f, in, 1) {
			in.Put(f.Batch, s.replyHere(f.Shard))
		}
		return
	}
	if s.cfg.Bus != nil && s.connected.Load() {
		if !s.leaves(f, nil, 1) {
			return
		}
		if err := s.cfg.Bus.Publish(Subject(f.Shard), s.replySubject(f), f.encoded()); err == nil {
			return
		}
	}
	s.post(f)
}

// Detour sends a flight through the store; to an owner in this process it goes directly, as ever.
func (s *Sender) Detour(f *Flight) {
	if _, ok := s.owners.Load(f.Shard); ok || s.cfg.Mailbox == nil {
		s.Dispatch(f)
		return
	}
	s.post(f)
}

// leaves counts the copies of a flight that go on their way: into the inbox of an owner here, or over a way at
// whose end owners may read them that do not know of each other. It reports false when the flight was answered
// meanwhile: nothing may follow an answer that was passed on.
func (s *Sender) leaves(f *Flight, in Inbox, copies int) bool {
	if f.Batch.Lane == command.LaneOffer {
		return true
	}
	l := &s.lanes[f.Shard][f.Batch.Lane]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flight != f {
		return false
	}
	if in == nil || f.inbox != in {
		f.inbox, f.copies = in, f.copies+copies
		f.direct = f.direct || copies < mailboxReaders
	}
	return true
}

// OwnerChanged sends everything under way to a shard again.
func (s *Sender) OwnerChanged(shard int) {
	for id := range s.lanes[shard] {
		l := &s.lanes[shard][id]
		l.mu.Lock()
		f := l.flight
		if f != nil {
			f.Sent, f.Acknowledged = time.Now(), false
		}
		l.mu.Unlock()
		if f != nil {
			s.Dispatch(f)
		}
	}
}

// BusChanged learns whether the bus is there. When it is not, answers may have been lost with it: what is under way
// is sent again through the store, without waiting for its time.
func (s *Sender) BusChanged(connected bool) {
	s.connected.Store(connected)
	if connected {
		return
	}
	for shard := range s.lanes {
		for id := range s.lanes[shard] {
			l := &s.lanes[shard][id]
			l.mu.Lock()
			if f := l.flight; f != nil {
				f.Sent, f.Acknowledged = time.Time{}, false
			}
			l.mu.Unlock()
		}
	}
	if s.offers != nil {
		s.offers.Hasten()
	}
}

// resendLoop sends again what goes unanswered until ctx ends.
func (s *Sender) resendLoop(ctx context.Context) error {
	ticker := time.NewTicker(BusTimeout / 5)
	defer ticker.Stop()
	defer func() {
		if why := context.Cause(ctx); errors.Is(why, errClosed) {
			s.closeFor(why)
		} else {
			s.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.resend(time.Now())
		}
	}
}

func (s *Sender) resend(now time.Time) {
	var unanswered bool
	for shard := range s.lanes {
		for id := range s.lanes[shard] {
			laneID := uint8(id)
			l := &s.lanes[shard][id]
			l.mu.Lock()
			f := l.flight
			gives := laneID != command.LaneWork // what an attempt reports is sent for ever
			unanswered = unanswered || f != nil && gives && now.Sub(f.Began) > liveness.AliveFor && f.awaited()
			if f == nil || now.Sub(f.Sent) < f.Timeout() {
				l.mu.Unlock()
				continue
			}
			if gives && now.Sub(f.Began) > GiveUp {
				l.flight = nil
				l.mu.Unlock()
				f.fail(errUnknown)
				s.leave(shard, laneID)
				continue
			}
			overBus := f.Acknowledged // it was posted or parked long ago: begin with the fast way again
			f.Sent, f.Acknowledged = now, !overBus
			l.mu.Unlock()
			if overBus {
				s.Dispatch(f)
			} else {
				s.Detour(f)
			}
		}
	}
	if unanswered {
		s.liveness.Doubtful()
	}
}
