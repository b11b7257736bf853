package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"taskledger/engine/internal/command"
	"taskledger/projection"
	"taskledger/store"
)

// An answer may say what no entry of the journal stands for: that a command was refused, that there is no such task, that an
// outcome comes too late. Only the shard's owner can know, and the lease may have been revoked although it was renewed a
// moment ago. So the owner lets such an answer wait for a proof, a read which shows that the shard still is its own. It is
// the counterpart of what senders do by settling.

// proofs are the reads of one owner. One is under way at a time, for all who asked before it began.
type proofs struct {
	mu      sync.Mutex
	waiting []func(error)
	reading bool
}

// prove calls told once, with an error when somebody else owns the shard or nobody could tell; not after the session.
func (o *owner) prove(told func(error)) {
	p := &o.proofs
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, told)
	if !p.reading {
		p.reading = true
		o.m.spawn(o.readProofs)
	}
}

func (o *owner) readProofs(ctx context.Context) {
	p := &o.proofs
	for {
		p.mu.Lock()
		asked := p.waiting
		p.waiting = nil
		p.reading = len(asked) > 0
		p.mu.Unlock()
		if len(asked) == 0 {
			return
		}
		err := o.readOwner(ctx)
		for _, told := range asked {
			told(err)
		}
	}
}

func (o *owner) readOwner(ctx context.Context) error {
	members, err := o.m.members.ReadMembers(ctx)
	if err != nil {
		return fmt.Errorf("read who owns shard %d: %w", o.ownership.Shard, err)
	}
	if now := members.Owners[o.ownership.Shard]; now.Revision != o.ownership.Revision {
		return store.ErrFenced
	}
	return nil
}

// stillOwner waits for a proof; an error says that there is none.
func (o *owner) stillOwner(ctx context.Context) error {
	proven := make(chan error, 1)
	o.prove(func(err error) { proven <- err })
	select {
	case err := <-proven:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// recorded reports whether the journal holds that a batch was decided, and how.
func (o *owner) recorded(b *command.Batch) bool {
	row := o.state.Decided(projection.SenderLane{Sender: b.Sender, Lane: b.Lane})
	return row != nil && row.Number == b.Number
}

// tellsState reports whether answers that are not recorded say what only the shard's owner can. Those to submits do; of work
// they do when an attempt is called over, but not when a roll call finds nothing to say.
func (r *pendingReply) tellsState() bool {
	return r.Batch.Lane == command.LaneSubmit ||
		slices.ContainsFunc(r.answers, func(a command.Answer) bool { return a.Code != command.AnswerOK || a.Data != nil })
}

// replyOnceProven gives answers that are not recorded when there is a proof; else the next owner answers.
func (o *owner) replyOnceProven(replies []pendingReply) {
	if len(replies) == 0 {
		return
	}
	o.prove(func(err error) {
		if err != nil {
			o.log.Info("answers are left to the shard's owner", "err", err)
			return
		}
		for i := range replies {
			replies[i].reply(replies[i].Batch, replies[i].answers, false)
		}
	})
}
