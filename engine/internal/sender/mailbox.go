package sender

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/notice"
	"taskledger/internal/message"
	"taskledger/store"
)

const (
	// writers is how many goroutines post letters side by side.
	writers = 4
	// postTimeout bounds the post of a letter.
	postTimeout = 5 * time.Second
	// readAgain is how long after answers have ended to come through the store they are read again.
	readAgain = time.Second
)

// post gives a flight to the writer of its shard, unless he has it.
func (s *Sender) post(f *Flight) {
	if s.cfg.Mailbox == nil || !f.posting.CompareAndSwap(false, true) {
		return
	}
	f.Queued = time.Now()
	s.detoured[f.Shard].Store(true)
	select {
	case s.outbox[f.Shard%writers] <- f:
	default: // the next round of resend tries again
		f.posting.Store(false)
	}
}

// postLoop posts the flights of one writer's shards until ctx ends. One that was answered meanwhile is left out: it
// would replace the letter of a later one.
func (s *Sender) postLoop(ctx context.Context, flights <-chan *Flight) error {
	var full notice.Onset
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-flights:
			if s.flightOf(f.Shard, f.Batch.Lane, f.Batch.Number) != f || !s.leaves(f, nil, letterReaders) {
				continue
			}
			postCtx, cancel := context.WithTimeout(ctx, postTimeout)
			err := s.cfg.Mailbox.Post(postCtx, f.Shard, s.cfg.ID, f.Batch.Lane, f.encoded())
			cancel()
			switch {
			case ctx.Err() != nil:
			case errors.Is(err, store.ErrTooLarge), errors.Is(err, store.ErrFull):
				if full.Begins(err) {
					s.cfg.Log.WarnContext(ctx, "the store does not take a batch", "err", err)
				}
				why := command.StoreFull
				if errors.Is(err, store.ErrTooLarge) {
					why = fmt.Sprintf("a batch of %d bytes is larger than the store takes, and the message bus is away", len(f.encoded()))
				}
				s.noRoom(f, why, errors.Is(err, store.ErrRefused))
			case err != nil:
				s.cfg.Log.WarnContext(ctx, "post of a batch will be tried again", "shard", f.Shard, "err", err)
			default:
				full.Begins(nil)
			}
			s.posted(f)
			f.posting.Store(false)
		}
	}
}

// posted lets a flight wait for the answer to its letter; one that could not be written is as likely to be, or to
// fail again.
func (s *Sender) posted(f *Flight) {
	if f.Batch.Lane == command.LaneOffer {
		s.offers.Posted(f)
		return
	}
	s.answered(f.Shard, f.Batch.Lane, f.Batch.Number, nil, false)
	l := &s.lanes[f.Shard][f.Batch.Lane]
	l.mu.Lock()
	f.Sent = time.Now()
	l.mu.Unlock()
}

// noRoom ends a flight for whose letter the store has no room. Reports of attempts wait. unsent tells that nothing
// of this copy was sent.
func (s *Sender) noRoom(f *Flight, why string, unsent bool) {
	switch f.Batch.Lane {
	case command.LaneQuery:
		why = fmt.Sprintf("shard %d cannot be asked: %s", f.Shard, why)
		info := func(*command.Info) command.Answer {
			return command.Answer{Data: message.Encode(command.ShardReport{Problem: why})}
		}
		s.answered(f.Shard, command.LaneQuery, f.Batch.Number, command.AnswersWithoutRoom(f.Batch.Commands, why, info), false)
	case command.LaneSubmit:
		full := command.Overload("%s", why)
		if !unsent || !s.refuse(f, full) {
			waits := command.Answer{Code: command.AnswerStoreFull, Text: full.Text, Number: full.Number}
			s.answered(f.Shard, command.LaneSubmit, f.Batch.Number, []command.Answer{waits}, false)
		}
	}
}

// refuse ends a flight of which no copy but one letter, that was never written, was on its way; false when there
// was another.
func (s *Sender) refuse(f *Flight, why command.Answer) bool {
	l := &s.lanes[f.Shard][f.Batch.Lane]
	l.mu.Lock()
	if l.flight != f || f.unconfirmed != nil || f.direct || f.copies != letterReaders {
		l.mu.Unlock()
		return false
	}
	next := s.endLocked(l, f)
	l.mu.Unlock()
	next()
	f.fail(why.Err(""))
	return true
}

// readAnswers takes answers that come through the store until ctx ends. Without them a process gets none while the
// bus is away, so it begins again, after a pause, should they end before.
func (s *Sender) readAnswers(ctx context.Context) error {
	var failing notice.Onset
	for {
		for a, err := range s.cfg.Mailbox.Answers(ctx, s.cfg.ID) {
			if failing.Begins(err) && ctx.Err() == nil {
				s.cfg.Log.WarnContext(ctx, "answers through the store are delayed", "err", err)
			}
			if err == nil {
				s.receive(a.Answer)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(readAgain):
		}
	}
}
