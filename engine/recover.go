package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"taskledger/engine/internal/ahead"
	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
)

const (
	// entriesAhead is how many entries are decoded before they are folded.
	entriesAhead = 4
	// archivePatience bounds the question where the archive of a shard ends, for which a new owner waits. Where there is
	// no answer the shard is served all the same.
	archivePatience = time.Second
)

var (
	// errOnlyArchive reports a shard whose state nothing but the archive leads to.
	errOnlyArchive = errors.New("the archive alone holds the entries before it")
	errArchiveAway = errors.New("the archive, which alone holds the shard's entries, cannot be read now")
	// errAnew reports that what an operator gave up has changed while it was being recorded: the shard is read again.
	errAnew   = errors.New("what was given up has changed")
	errCutOff = fmt.Errorf("%w: the end of the journal is missing", events.ErrDamaged)
)

// loaded is a shard's state after the entry head, and what is to be known to go on from there.
type loaded struct {
	state   *projection.Shard
	head    store.Head
	pointer store.SnapshotPointer // without the damaged ones
	damaged []store.SnapshotInfo  // that could not be read
	tail    int64                 // bytes of the entries after the newest snapshot
}

// pointTo takes over a pointer, less what is known to be damaged: no trim may rely on that, and the next snapshot to be
// published takes its place.
func (l *loaded) pointTo(p store.SnapshotPointer) { l.pointer = p.Without(l.damaged) }

// loadShard reads the newest snapshot of a shard that can be read, and the journal from there. Snapshots that cannot be read are
// passed over: the one before, or all entries from the first on, lead to the same state. Entries after an older one must
// lead to the newest at least: what ends before has been cut off, and to go on from there would be another history. It wraps
// errArchiveAway when only all entries would do, and not all can be read now.
func (m *member) loadShard(ctx context.Context, shard int) (*loaded, error) {
	return m.loadFor(ctx, shard, true)
}

// loadStored is loadShard from the store alone. It wraps errOnlyArchive when only all entries would do: to read them takes long,
// or is in vain, and somebody has to answer for the shard meanwhile.
func (m *member) loadStored(ctx context.Context, shard int) (*loaded, error) {
	return m.loadFor(ctx, shard, false)
}

func (m *member) loadFor(ctx context.Context, shard int, fromArchive bool) (*loaded, error) {
	for {
		pointer, err := m.readPointer(ctx, shard)
		if err != nil {
			return nil, err
		}
		archived := m.archivedTo(ctx, shard)
		have, err := m.loadFrom(ctx, shard, pointer)
		if err == nil {
			err = m.cutOff(ctx, shard, have, pointer, archived)
		}
		cut := errors.Is(err, errCutOff)
		if !cut && !errors.Is(err, store.ErrTrimmed) {
			return have, err
		}
		again, unread := m.readPointer(ctx, shard)
		if unread != nil {
			return nil, unread
		}
		if again.Revision != pointer.Revision {
			continue // newer snapshots have taken the place of those
		}
		if cut {
			return nil, err
		}
		missing, unread := m.missing(ctx, shard, have.head.Number+1)
		if unread != nil {
			return nil, unread
		}
		if m.cfg.reader() == nil {
			return nil, damagedAt(missing, fmt.Errorf("%w: entry %d of shard %d is missing", events.ErrDamaged, missing, shard))
		}
		if !fromArchive {
			return nil, fmt.Errorf("entry %d of shard %d is missing after the last snapshot that can be read: %w", missing, shard, errOnlyArchive)
		}
		m.log.WarnContext(ctx, "an entry is missing after the last snapshot that can be read: all are read, from the archive on", "shard", shard, "entry", missing)
		have = newLoaded(shard, pointer, pointer.Kept)
		if err = have.replay(shard, m.reader.Read(ctx, shard, 1)); err == nil {
			err = m.cutOff(ctx, shard, have, pointer, archived)
		}
		switch {
		case err == nil || ctx.Err() != nil:
			return have, ctx.Err()
		case errors.Is(err, store.ErrTrimmed), isDamage(err):
			return nil, damagedAt(missing, fmt.Errorf("%w: entry %d of shard %d is missing, and not all entries can be read from the archive on: %w", events.ErrDamaged, missing, shard, err))
		}
		return nil, fmt.Errorf("%w: %w", errArchiveAway, err)
	}
}

// missing returns the first entry from from on that the journal does not hold.
func (m *member) missing(ctx context.Context, shard int, from uint64) (uint64, error) {
	for ; ; from++ {
		if _, err := m.journal.Entry(ctx, shard, from); errors.Is(err, store.ErrTrimmed) {
			return from, nil
		} else if err != nil {
			return 0, err
		}
	}
}

// readPointer reads a shard's snapshot pointer. A damaged one points to nothing.
func (m *member) readPointer(ctx context.Context, shard int) (store.SnapshotPointer, error) {
	pointer, err := m.snapshots.Pointer(ctx, shard)
	if errors.Is(err, events.ErrDamaged) {
		m.log.ErrorContext(ctx, "snapshot pointer cannot be read, the entries are", "shard", shard, "err", err)
		return store.SnapshotPointer{Revision: pointer.Revision}, nil
	}
	if err != nil {
		return pointer, fmt.Errorf("read snapshot pointer of shard %d: %w", shard, err)
	}
	return pointer, nil
}

// loadFrom reads the newest of the snapshots that can be read, and the journal from there, or the whole journal.
func (m *member) loadFrom(ctx context.Context, shard int, pointer store.SnapshotPointer) (*loaded, error) {
	var damaged []store.SnapshotInfo
	contradict := 0
	for _, s := range pointer.Kept {
		have, err := m.restore(ctx, shard, s)
		if errors.Is(err, errContradicts) {
			if contradict++; contradict == len(pointer.Kept) {
				return nil, fmt.Errorf("every snapshot of shard %d tells of another history than its journal: %w", shard, err)
			}
		}
		switch {
		case err == nil:
			have.damaged = damaged
			have.pointTo(pointer)
			return have, m.replay(ctx, shard, have)
		case errors.Is(err, events.ErrVersion):
			return nil, err // who folds the entries without knowing what it holds comes to another state
		case errors.Is(err, events.ErrDamaged), errors.Is(err, store.ErrTrimmed):
			m.log.Log(ctx, unreadLevel(err), "snapshot cannot be read, an earlier state is", "shard", shard, "entry", s.Entry, "err", err)
			damaged = append(damaged, s)
		default:
			return nil, err
		}
	}
	have := newLoaded(shard, pointer, damaged)
	return have, m.replay(ctx, shard, have)
}

// unreadLevel is for operators: a snapshot that is not there any more has made room for a later one meanwhile.
func unreadLevel(err error) slog.Level {
	if errors.Is(err, store.ErrTrimmed) {
		return slog.LevelInfo
	}
	return slog.LevelError
}

// newLoaded is a shard before its first entry.
func newLoaded(shard int, pointer store.SnapshotPointer, damaged []store.SnapshotInfo) *loaded {
	l := &loaded{state: projection.NewShard(shard), damaged: damaged}
	l.pointTo(pointer)
	return l
}

// errContradicts reports a snapshot that is sound in itself and not the state after the entry that the journal has.
var errContradicts = errors.New("another history")

// restore reads a snapshot and the entry that it is the state after.
func (m *member) restore(ctx context.Context, shard int, s store.SnapshotInfo) (*loaded, error) {
	state, err := m.reader.Restore(ctx, shard, s)
	if err != nil {
		return nil, err
	}
	rec, err := m.journal.Entry(ctx, shard, s.Entry)
	if err != nil {
		return nil, fmt.Errorf("read the entry of a snapshot: %w", err)
	}
	e, err := events.Decode(rec.Data)
	if err != nil {
		return nil, err
	}
	if state.Hash != e.Hash {
		return nil, fmt.Errorf("%w: %w: snapshot of entry %d has hash %s, the journal %s", events.ErrDamaged, errContradicts, s.Entry, state.Hash, e.Hash)
	}
	return &loaded{state: state, head: rec.Head}, nil
}

// replay reads the journal behind the given state up to its end.
func (m *member) replay(ctx context.Context, shard int, have *loaded) error {
	return have.replay(shard, m.journal.Read(ctx, shard, have.head.Number+1))
}

// replay folds the entries of a shard. What comes next is read and decoded meanwhile.
func (l *loaded) replay(shard int, journal iter.Seq2[store.Record, error]) error {
	for e, err := range ahead.Of(ledger.Decoded(shard, l.head.Number+1, journal), entriesAhead) {
		if err != nil {
			return damagedAt(l.head.Number+1, fmt.Errorf("read entry %d of shard %d: %w", l.head.Number+1, shard, err))
		}
		if err := l.state.Replay(e.Entry); err != nil {
			return damagedAt(e.Number, fmt.Errorf("replay entry %d of shard %d: %w", e.Number, shard, err))
		}
		l.head, l.tail = store.Head{Number: e.Number, Revision: e.Revision}, l.tail+int64(e.Size)
	}
	return nil
}

// archivedTo is the last entry that the archive holds of a shard; 0 where it cannot tell.
func (m *member) archivedTo(ctx context.Context, shard int) uint64 {
	if !m.cfg.archives() {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, archivePatience)
	defer cancel()
	head, err := m.cfg.Archive.Head(ctx, shard)
	if err != nil {
		level := slog.LevelInfo // it is asked again before a trim
		if errors.Is(err, events.ErrDamaged) {
			level = slog.LevelWarn
		}
		m.log.Log(ctx, level, "the archive does not say whether it goes beyond the journal", "shard", shard, "err", err)
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
	explained, err := m.explained(ctx, shard, lostAfter(l.state))
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

// lostAfter returns the entries after which the store lost the rest of the journal, as that records it.
func lostAfter(s *projection.Shard) (ends []uint64) {
	for _, l := range s.Journal().Losses() {
		if l.Kind == events.KindRecovered {
			ends = append(ends, l.Entry)
		}
	}
	return ends
}

// explained reports whether a recorded loss is why the archive of a shard continues otherwise than its journal: both go back to one history,
// and behind one of the ends that were left the archive has another entry.
func (m *member) explained(ctx context.Context, shard int, ends []uint64) (bool, error) {
	for _, end := range ends {
		own, archived, err := m.both(ctx, shard, end+1)
		if err != nil {
			return false, err
		}
		if own == nil || archived == nil || own.Hash == archived.Hash {
			continue
		}
		if own.Prev == archived.Prev {
			return true, nil
		}
		// A node may have gone on for some time before the loss was given up.
		if is, err := m.related(ctx, shard); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// related reports whether journal and archive of a shard go back to one history: where the journal begins they have the same entry, or the
// same one before.
func (m *member) related(ctx context.Context, shard int) (bool, error) {
	first, err := m.trimmer.First(ctx, shard)
	if err != nil {
		return false, err
	}
	own, archived, err := m.both(ctx, shard, max(first, 1))
	if own == nil || archived == nil || err != nil {
		return false, err
	}
	return own.Hash == archived.Hash || first > 1 && own.Prev == archived.Prev, nil
}

// both reads an entry of a shard as the journal has it, and as the archive does; nil = it has none.
func (m *member) both(ctx context.Context, shard int, number uint64) (own, archived *events.Entry, err error) {
	if own, err = m.journalled(ctx, shard, number); err != nil {
		return nil, nil, err
	}
	archived, err = m.archived(ctx, shard, number)
	return own, archived, err
}

// journalled reads an entry from the journal; nil = it is not there.
func (m *member) journalled(ctx context.Context, shard int, number uint64) (*events.Entry, error) {
	rec, err := m.journal.Entry(ctx, shard, number)
	if errors.Is(err, store.ErrTrimmed) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return events.Decode(rec.Data)
}

// archived reads an entry from the archive; nil = it is not there.
func (m *member) archived(ctx context.Context, shard int, number uint64) (*events.Entry, error) {
	for rec, err := range m.cfg.Archive.ReadArchive(ctx, shard, number) {
		if errors.Is(err, store.ErrTrimmed) && !errors.Is(err, events.ErrDamaged) {
			break
		}
		if err != nil {
			return nil, err
		}
		return events.Decode(rec.Data)
	}
	return nil, nil
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
