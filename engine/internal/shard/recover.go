package shard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/store"
)

// AcceptLoss records what an operator has left to this owner, before it decides anything. What is not the end of
// the journal any more is removed without effect.
func (o *Owner) AcceptLoss(ctx context.Context, have *Loaded) error {
	l, is, err := o.cfg.Loader.givenUp(ctx, o.ownership.Shard, have)
	if err != nil || l.Revision == 0 {
		return err
	}
	if !is {
		o.log.WarnContext(ctx, "what was given up of the journal is not its end any more: nothing is done about it",
			"entry", l.Entry, "hash", l.Hash, "end", have.Head.Number)
		return o.cfg.Loader.Losses.Forget(ctx, l)
	}
	var left store.SnapshotPointer
	if slices.ContainsFunc(have.damaged, func(s store.SnapshotInfo) bool { return s.Entry > l.Entry }) {
		left = have.pointer
	}
	return o.recover(ctx, l, left)
}

// recover records, as the first entry of the owner, that what followed the end of the journal is lost. Of the
// snapshots those of left stay, if it has a revision.
func (o *Owner) recover(ctx context.Context, l store.Loss, left store.SnapshotPointer) error {
	began := time.Since(base)
	now := o.clock.Now(o.wall(), began)
	o.beginEntry(now)
	d := &command.Decider{
		State:   o.state,
		Entry:   &o.entry,
		Now:     now,
		Wall:    o.wall(),
		Note:    o.note,
		Members: o.cfg.Host.View(),
	}
	d.Recover(&events.Recovered{Entry: l.Entry, Sound: l.Hash, Reason: l.Reason})
	if d.Err != nil {
		return fmt.Errorf("decide entry %d of shard %d: %w", o.head.Number+1, l.Shard, d.Err)
	}
	data, err := o.entry.Seal()
	if err == nil {
		err = o.cfg.Host.Readable(ctx, d.Highest)
	}
	if err != nil {
		return err
	}
	revision, err := o.cfg.Loader.Losses.Recover(ctx, o.ownership, o.head, data, l, left)
	if err != nil {
		if now, unread := o.cfg.Loader.Losses.Loss(ctx, l.Shard); unread == nil && now.Revision != l.Revision {
			return fmt.Errorf("%w: %w", ErrAnew, err)
		}
		return damagedAt(o.head.Number+1, err)
	}
	o.committed(revision, len(data))
	o.clock.Hold(now, began)
	if left.Revision != 0 {
		o.snapshots.leave(revision)
	}
	o.trims.lost = o.state.CutAfter()
	o.publishView()
	o.log.WarnContext(ctx, "the end of the journal was given up", "entry", l.Entry, "reason", l.Reason)
	return nil
}
