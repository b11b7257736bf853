package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/internal/message"
	"taskledger/store"
)

// post gives the flight to the postman of its shard, unless he has it.
func (r *router) post(f *flight) {
	if r.mailbox == nil || !f.posting.CompareAndSwap(false, true) {
		return
	}
	f.handed = time.Now()
	r.detoured[f.shard].Store(true)
	select {
	case r.posts[f.shard%postmen] <- f:
	default: // the next round of resend tries again
		f.posting.Store(false)
	}
}

// postLetters writes the flights of one postman's shards to the store until ctx ends. One that was answered meanwhile is
// left out: it would replace the letter of a later one.
func (r *router) postLetters(ctx context.Context, postman int) error {
	var full complaint
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-r.posts[postman]:
			if r.flightOf(f.shard, f.batch.Lane, f.batch.Number) != f || !r.leaves(f, nil, letterReaders) {
				continue
			}
			postCtx, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := r.mailbox.Post(postCtx, f.shard, r.sender, f.batch.Lane, f.bytes())
			cancel()
			switch {
			case ctx.Err() != nil:
			case errors.Is(err, store.ErrTooLarge), errors.Is(err, store.ErrFull):
				if full.begins(err) {
					r.log.WarnContext(ctx, "the store does not take a batch", "err", err)
				}
				why := command.StoreFull
				if errors.Is(err, store.ErrTooLarge) {
					why = fmt.Sprintf("a batch of %d bytes is larger than the store takes, and the message bus is away", len(f.bytes()))
				}
				r.noRoom(f, why, errors.Is(err, store.ErrRefused))
			case err != nil:
				r.log.WarnContext(ctx, "post of a batch will be tried again", "shard", f.shard, "err", err)
			default:
				full.begins(nil)
			}
			r.posted(f)
			f.posting.Store(false)
		}
	}
}

// posted lets a flight wait for the answer to its letter; one that could not be written is as likely to be, or to fail again.
func (r *router) posted(f *flight) {
	if f.batch.Lane == command.LaneOffer {
		r.offers.posted(f)
		return
	}
	r.answered(f.shard, f.batch.Lane, f.batch.Number, nil, false)
	l := &r.lanes[f.shard][f.batch.Lane]
	l.mu.Lock()
	f.sent = time.Now()
	l.mu.Unlock()
}

// noRoom tells who waits for a flight why the store has no room for its letter. Outcomes wait. unsent tells that nothing of this
// copy was sent.
func (r *router) noRoom(f *flight, why string, unsent bool) {
	switch f.batch.Lane {
	case command.LaneQuery:
		why = fmt.Sprintf("shard %d cannot be asked: %s", f.shard, why)
		info := func(*command.Info) command.Answer {
			return command.Answer{Data: message.Encode(command.ShardReport{Problem: why})}
		}
		r.answered(f.shard, command.LaneQuery, f.batch.Number, command.AnswersWithoutRoom(f.batch.Commands, why, info), false)
	case command.LaneSubmit:
		full := command.Overload("%s", why)
		if !unsent || !r.refuse(f, full) {
			r.answered(f.shard, command.LaneSubmit, f.batch.Number, []command.Answer{{Code: command.AnswerStoreFull, Text: full.Text, Number: full.Number}}, false)
		}
	}
}

// refuse ends a flight of which no copy but one letter, that was never written, was on its way; false when there was another.
func (r *router) refuse(f *flight, why command.Answer) bool {
	l := &r.lanes[f.shard][f.batch.Lane]
	l.mu.Lock()
	if l.flight != f || f.told != nil || f.direct || f.copies != letterReaders {
		l.mu.Unlock()
		return false
	}
	next := r.afterLocked(l, f)
	l.mu.Unlock()
	next()
	f.fail(why.Err(""))
	return true
}

// readAnswers takes answers that come through the store until ctx ends. Without them a process gets none while the bus is away, so
// it begins again, after a pause, should they end before.
func (r *router) readAnswers(ctx context.Context) error {
	var failing complaint
	for {
		for a, err := range r.mailbox.Answers(ctx, r.sender) {
			if failing.begins(err) && ctx.Err() == nil {
				r.log.WarnContext(ctx, "answers through the store are delayed", "err", err)
			}
			if err == nil {
				r.receive(a.Answer)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(readAgain):
		}
	}
}

// complaint lets a trouble that goes on be logged when it begins.
type complaint struct{ began bool }

// begins takes the outcome of one more try, and reports whether it is the first of those in a row that failed.
func (c *complaint) begins(err error) bool {
	before := c.began
	c.began = err != nil
	return c.began && !before
}
