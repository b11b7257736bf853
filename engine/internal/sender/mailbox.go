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

// PostTimeout bounds one post to a mailbox.
const PostTimeout = 5 * time.Second

const (
	// writers is the number of outbox writers: goroutines that post to mailboxes.
	writers = 4
	// readAgain is the pause before answers through the store are read again once their stream has ended.
	readAgain = time.Second
)

// post passes a flight to the outbox writer of its shard, unless that has it.
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

// postLoop posts the flights of one writer's shards until ctx ends. It skips a flight that was answered meanwhile,
// which would replace the mailbox message of a later one.
func (s *Sender) postLoop(ctx context.Context, flights <-chan *Flight) error {
	var full notice.Onset
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-flights:
			if s.flightOf(f.Shard, f.Batch.Lane, f.Batch.Number) != f || !s.leaves(f, nil, mailboxReaders) {
				continue
			}
			postCtx, cancel := context.WithTimeout(ctx, PostTimeout)
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
					why = fmt.Sprintf("a batch of %d bytes is larger than the store takes, and the message bus is away",
						len(f.encoded()))
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

// posted lets a flight wait for its answer. A post that failed may have been written after all, and would most likely
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

// noRoom ends a flight that the store has no room for. Reports of attempts wait. unsent reports that nothing of this
// copy was sent.
func (s *Sender) noRoom(f *Flight, why string, unsent bool) {
	switch f.Batch.Lane {
	case command.LaneQuery:
		why = fmt.Sprintf("shard %d cannot be asked: %s", f.Shard, why)
		info := func(*command.Info) command.Answer {
			return command.Answer{Data: message.Encode(command.ShardReport{Problem: why})}
		}
		answers := command.AnswersWithoutRoom(f.Batch.Commands, why, info)
		s.answered(f.Shard, command.LaneQuery, f.Batch.Number, answers, false)
	case command.LaneSubmit:
		full := command.Overload("%s", why)
		if !unsent || !s.refuse(f, full) {
			waits := command.Answer{Code: command.AnswerStoreFull, Text: full.Text, Number: full.Number}
			s.answered(f.Shard, command.LaneSubmit, f.Batch.Number, []command.Answer{waits}, false)
		}
	}
}

// refuse ends a flight whose only copy is a mailbox message that was never written. It returns false when there was
// another copy.
func (s *Sender) refuse(f *Flight, why command.Answer) bool {
	l := &s.lanes[f.Shard][f.Batch.Lane]
	l.mu.Lock()
	if l.flight != f || f.unconfirmed != nil || f.direct || f.copies != mailboxReaders {
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
