package work

import (
	"context"
	"errors"
	"fmt"

	"taskledger/behaviors"
)

// hold makes the attempt of the task of a hold.
func (w *Work[P, I]) hold(ctx context.Context, place int, of current[P]) error {
	if place < 0 || place >= len(w.partitions) || w.partitions[place].flow == nil {
		return &absentError{w.hash(), fmt.Sprintf("a hold is of stream %d, which the definition of this node has not", place)}
	}
	p := &w.partitions[place]
	if of.record == nil {
		return refuse("stream", "the ledger of the attempt has no record of streams")
	}
	plan := p.plan()
	of.plan, of.place, of.rules = &plan, place, p.Rules
	of.info.Partition, of.info.Bucket = plan.ID, Bucket{Number: 1}
	return p.flow.runHold(ctx, of)
}

// runHold implements flow: it processes the changes of a hold in their order until none is left.
func (s *flowOf[P, C]) runHold(ctx context.Context, of current[P]) error {
	processed := 0
	for {
		changes, err := of.record.Held(ctx, processed)
		if err != nil {
			return ended(ctx, fmt.Errorf("asking for the changes of a hold of stream %s: %w", of.plan.ID, err))
		}
		if len(changes) == 0 {
			return nil
		}
		processed = 0
		for i := range changes {
			failed := context.Cause(ctx)
			if failed == nil {
				failed = s.heldAgain(ctx, of, changes[i].Data)
			}
			if failed == nil {
				processed++
				continue
			}
			lasts, done := lasting(ctx)
			defer done()
			if processed == 0 {
				return ended(ctx, failed)
			}
			if _, err := of.record.Held(lasts, processed); err != nil {
				failed = errors.Join(failed, fmt.Errorf("recording %d processed changes of the hold: %w", processed, err))
			}
			return ended(ctx, failed)
		}
	}
}

// heldAgain processes a change of a hold.
func (s *flowOf[P, C]) heldAgain(ctx context.Context, of current[P], data []byte) error {
	held, err := decodeHeld[C](data)
	if err != nil {
		return err
	}
	err = behaviors.Code(held.Code, errors.New(held.Unread), nil)
	if held.Unread == "" {
		err = s.call(&scope{Context: ctx, info: of.info}, Change[C]{
			Key:   held.Key,
			Token: held.Token,
			Value: held.Value,
		})
	}
	if err == nil {
		return nil
	}
	if _, skips := skipped(err); skips {
		return nil
	}
	e := itemError(held.Key, err)
	if d := decide(of.rules, e.Code, MaxRetries*MaxRules+1); d.place >= 0 && (d.React == Ignore || d.React == GoOn) {
		return nil
	}
	return &heldError{
		key: held.Key,
		at:  held.Token,
		is:  e,
	}
}
