package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"taskledger/engine/internal/ahead"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
)

// entriesAhead is how many entries are decoded before they are folded.
const entriesAhead = 4

var (
	// errOnlyArchive reports a shard whose state nothing but the archive leads to.
	errOnlyArchive = errors.New("the archive alone holds the entries before it")
	errArchiveAway = errors.New("the archive, which alone holds the shard's entries, cannot be read now")
	errCutOff      = fmt.Errorf("%w: the end of the journal is missing", events.ErrDamaged)
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
