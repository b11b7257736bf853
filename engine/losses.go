package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection/journal"
	"taskledger/store"
)

// archivePatience bounds the question where the archive of a shard ends, for which a new owner waits. Where there is no answer the
// shard is served all the same.
const archivePatience = time.Second

// errAnew reports that what an operator gave up has changed while it was being recorded: the shard is read again.
var errAnew = errors.New("what was given up has changed")

// archivedTo is the last entry that the archive holds of a shard; 0 where it cannot tell.
func (m *member) archivedTo(ctx context.Context, shard int) uint64 {
	if !m.cfg.archives() {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, archivePatience)
	defer cancel()
	head, err := m.cfg.Archive.Head(ctx, shard)
	if err != nil {
		m.log.InfoContext(ctx, "the archive does not say whether it goes beyond the journal", "shard", shard, "err", err)
		return 0
	}
	return head.Entry
}

// cutOff wraps errCutOff when a snapshot or the archive, which was asked before the journal was read, goes beyond the end of the journal:
// all up to there was committed before. What an operator has given up is no error, whether it is recorded or waits for that.
func (m *member) cutOff(ctx context.Context, shard int, l *loaded, p store.SnapshotPointer, archived uint64) error {
	snapshot := len(p.Kept) > 0 && p.Kept[0].Entry > l.head.Number
	if !snapshot && archived <= l.head.Number {
		return nil
	}
	if _, is, err := m.givenUp(ctx, shard, l); is || err != nil {
		return err
	}
	if snapshot {
		return fmt.Errorf("%w: that of shard %d ends with entry %d, and has a snapshot of entry %d", errCutOff, shard, l.head.Number, p.Kept[0].Entry)
	}
	explained, err := m.explained(ctx, shard, l.state.Journal().Losses())
	if explained {
		return nil
	}
	cut := fmt.Errorf("%w: that of shard %d ends with entry %d, and its archive with entry %d", errCutOff, shard, l.head.Number, archived)
	return errors.Join(cut, err)
}

// givenUp returns what an operator has left to the next owner of a shard, and whether that is the end of the journal as it was loaded.
func (m *member) givenUp(ctx context.Context, shard int, l *loaded) (given store.Loss, is bool, err error) {
	given, err = m.losses.Loss(ctx, shard)
	if errors.Is(err, events.ErrDamaged) {
		return given, false, nil
	}
	return given, err == nil && given.Revision != 0 && given.Entry == l.head.Number && given.Hash == l.state.Hash, err
}

// explained reports whether a recorded loss is why the archive of a shard continues otherwise than its journal: behind what that loss left
// the archive has another entry.
func (m *member) explained(ctx context.Context, shard int, losses []journal.Loss) (bool, error) {
	for i := range losses {
		if losses[i].Kind != events.KindRecovered {
			continue
		}
		own, err := m.journal.Entry(ctx, shard, losses[i].Entry+1)
		if errors.Is(err, store.ErrTrimmed) { // the archive has taken it over since
			continue
		}
		if err != nil {
			return false, err
		}
		for rec, err := range m.cfg.Archive.ReadArchive(ctx, shard, own.Number) {
			if err != nil && !errors.Is(err, store.ErrTrimmed) {
				return false, err
			}
			if err == nil && !bytes.Equal(rec.Data, own.Data) {
				return true, nil
			}
			break
		}
	}
	return false, nil
}

// acceptLoss records what an operator has left to this owner, before it decides anything. What is not the end of the journal any more is
// removed without effect.
func (o *owner) acceptLoss(ctx context.Context, have *loaded) error {
	l, is, err := o.m.givenUp(ctx, o.ownership.Shard, have)
	if err != nil || l.Revision == 0 {
		return err
	}
	if !is {
		o.log.WarnContext(ctx, "what was given up of the journal is not its end any more: nothing is done about it", "entry", l.Entry,
			"hash", l.Hash, "end", have.head.Number)
		return o.m.losses.Forget(ctx, l)
	}
	var left store.SnapshotPointer
	if slices.ContainsFunc(have.damaged, func(s store.SnapshotInfo) bool { return s.Entry > l.Entry }) {
		left = have.pointer
	}
	return o.recover(ctx, l, left)
}

// recover records, as the first entry of the owner, that what followed the end of the journal is lost. Of the snapshots those of left
// stay, if it has a revision.
func (o *owner) recover(ctx context.Context, l store.Loss, left store.SnapshotPointer) error {
	began := time.Since(clockBase)
	now := o.clock.Now(o.m.now(), began)
	o.beginEntry(now)
	d := &command.Decider{State: o.state, Entry: &o.entry, Now: now, Wall: o.m.now(), Note: o.note, Members: o.m.view.Load()}
	d.Recover(&events.Recovered{Entry: l.Entry, Sound: l.Hash, Reason: l.Reason})
	if d.Err != nil {
		return fmt.Errorf("decide entry %d of shard %d: %w", o.head.Number+1, l.Shard, d.Err)
	}
	data, err := o.entry.Seal()
	if err == nil {
		err = o.m.readable(ctx, d.Highest)
	}
	if err != nil {
		return err
	}
	revision, err := o.m.losses.Recover(ctx, o.ownership, o.head, data, l, left)
	if err != nil {
		if now, unread := o.m.losses.Loss(ctx, l.Shard); unread == nil && now.Revision != l.Revision {
			return fmt.Errorf("%w: %w", errAnew, err)
		}
		return damagedAt(o.head.Number+1, err)
	}
	o.committed(revision, len(data))
	o.clock.Hold(now, began)
	if left.Revision != 0 {
		o.snapshots.leave(revision)
	}
	o.publishView()
	o.log.WarnContext(ctx, "the end of the journal was given up: ids of items go on far beyond it", "entry", l.Entry, "reason", l.Reason)
	return nil
}
