package shard

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
)

const (
	// entriesAhead bounds the entries that are decoded before they are folded.
	entriesAhead = 4
	// archiveTimeout bounds the question where the archive of a shard ends, for which a new owner waits. Where
	// there is no answer the shard is served all the same.
	archiveTimeout = time.Second
)

var (
	// ErrOnlyArchive reports a shard whose state nothing but the archive leads to.
	ErrOnlyArchive = errors.New("the archive alone holds the entries before it")
	ErrArchiveAway = errors.New("the archive, which alone holds the shard's entries, cannot be read now")
	// ErrAnew reports that what an operator gave up has changed while it was being recorded: the shard is read again.
	ErrAnew   = errors.New("what was given up has changed")
	ErrCutOff = fmt.Errorf("%w: the end of the journal is missing", events.ErrDamaged)
)

// Archive takes the entries of journals, and reads them back; see store.Archive.
type Archive interface {
	Head(ctx context.Context, shard int) (store.ArchiveHead, error)
	Archive(ctx context.Context, shard int, after store.ArchiveHead, entries []store.Record) (store.ArchiveHead, error)
	Confirm(ctx context.Context, shard int, head store.ArchiveHead, entries []store.Record) error
	DurableAfter() time.Duration
	ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error]
}

// Loader reads shards from the store, and from the archive where that alone holds them. Its fields are set before
// it is used.
type Loader struct {
	Journal   store.Journal
	Snapshots store.Snapshots
	Trimmer   store.Trimmer
	Losses    store.Losses
	Archive   Archive // nil without
	Archives  bool    // journals are archived before they are trimmed
	Reader    *ledger.Reader
	Log       *slog.Logger
}

// Loaded is a shard's state after the entry head, and what is to be known to go on from there.
type Loaded struct {
	State   *projection.Shard
	Head    store.Head
	pointer store.SnapshotPointer // without the damaged ones
	damaged []store.SnapshotInfo  // that could not be read
	tail    int64                 // bytes of the entries after the newest snapshot
}

// PointTo takes over a pointer, less what is known to be damaged: no trim may rely on that, and the next snapshot
// to be published takes its place.
func (l *Loaded) PointTo(p store.SnapshotPointer) { l.pointer = p.Without(l.damaged) }

// Load reads the newest snapshot of a shard that can be read, and the journal from there. Snapshots that cannot be
// read are passed over: the one before, or all entries from the first on, lead to the same state. Entries after an
// older one must lead to the newest at least: what ends before has been cut off, and to go on from there would be
// another history. It wraps ErrArchiveAway when only all entries would do, and not all can be read now.
func (r *Loader) Load(ctx context.Context, shard int) (*Loaded, error) {
	return r.loadFor(ctx, shard, true)
}

// LoadStored is Load without a state from the archive, which is only asked where it ends, and compared where it goes
// further than the journal. It wraps ErrOnlyArchive when only all entries would do: to read them
// takes long, or is in vain, and somebody has to answer for the shard meanwhile.
func (r *Loader) LoadStored(ctx context.Context, shard int) (*Loaded, error) {
	return r.loadFor(ctx, shard, false)
}

func (r *Loader) loadFor(ctx context.Context, shard int, fromArchive bool) (*Loaded, error) {
	for {
		pointer, err := r.Pointer(ctx, shard)
		if err != nil {
			return nil, err
		}
		archived := r.archivedTo(ctx, shard)
		have, err := r.loadFrom(ctx, shard, pointer)
		if err == nil {
			err = r.cutOff(ctx, shard, have, pointer, archived)
		}
		cut := errors.Is(err, ErrCutOff)
		if !cut && !errors.Is(err, store.ErrTrimmed) {
			return have, err
		}
		again, unread := r.Pointer(ctx, shard)
		if unread != nil {
			return nil, unread
		}
		if again.Revision != pointer.Revision {
			continue // newer snapshots have taken the place of those
		}
		if cut {
			return nil, err
		}
		missing, unread := r.missing(ctx, shard, have.Head.Number+1)
		if unread != nil {
			return nil, unread
		}
		if r.Archive == nil {
			return nil, damagedAt(missing,
				fmt.Errorf("%w: entry %d of shard %d is missing", events.ErrDamaged, missing, shard))
		}
		if !fromArchive {
			return nil, fmt.Errorf("entry %d of shard %d is missing after the last snapshot that can be read: %w",
				missing, shard, ErrOnlyArchive)
		}
		r.Log.WarnContext(ctx,
			"an entry is missing after the last snapshot that can be read: all are read, from the archive on",
			"shard", shard, "entry", missing)
		have = newLoaded(shard, pointer, pointer.Kept)
		if err = have.replay(shard, r.Reader.Read(ctx, shard, 1)); err == nil {
			err = r.cutOff(ctx, shard, have, pointer, archived)
		}
		switch {
		case err == nil || ctx.Err() != nil:
			return have, ctx.Err()
		case errors.Is(err, store.ErrTrimmed), IsDamage(err):
			return nil, damagedAt(missing, fmt.Errorf("%w: entry %d of shard %d is missing, "+
				"and not all entries can be read from the archive on: %w", events.ErrDamaged, missing, shard, err))
		}
		return nil, fmt.Errorf("%w: %w", ErrArchiveAway, err)
	}
}

// missing returns the first entry from from on that the journal does not hold.
func (r *Loader) missing(ctx context.Context, shard int, from uint64) (uint64, error) {
	for ; ; from++ {
		if _, err := r.Journal.Entry(ctx, shard, from); errors.Is(err, store.ErrTrimmed) {
			return from, nil
		} else if err != nil {
			return 0, err
		}
	}
}

// Pointer reads a shard's snapshot pointer. A damaged one points to nothing.
func (r *Loader) Pointer(ctx context.Context, shard int) (store.SnapshotPointer, error) {
	pointer, err := r.Snapshots.Pointer(ctx, shard)
	if errors.Is(err, events.ErrDamaged) {
		r.Log.ErrorContext(ctx, "snapshot pointer cannot be read, the entries are", "shard", shard, "err", err)
		return store.SnapshotPointer{Revision: pointer.Revision}, nil
	}
	if err != nil {
		return pointer, fmt.Errorf("read snapshot pointer of shard %d: %w", shard, err)
	}
	return pointer, nil
}

// loadFrom reads the newest of the snapshots that can be read, and the journal from there, or the whole journal.
func (r *Loader) loadFrom(ctx context.Context, shard int, pointer store.SnapshotPointer) (*Loaded, error) {
	var damaged []store.SnapshotInfo
	contradict := 0
	for _, s := range pointer.Kept {
		have, err := r.restore(ctx, shard, s)
		if errors.Is(err, ErrContradicts) {
			if contradict++; contradict == len(pointer.Kept) {
				return nil, fmt.Errorf("every snapshot of shard %d tells of another history than its journal: %w",
					shard, err)
			}
		}
		switch {
		case err == nil:
			have.damaged = damaged
			have.PointTo(pointer)
			return have, r.Replay(ctx, shard, have)
		case errors.Is(err, events.ErrVersion):
			return nil, err // who folds the entries without knowing what it holds comes to another state
		case errors.Is(err, events.ErrDamaged), errors.Is(err, store.ErrTrimmed):
			r.Log.Log(ctx, unreadLevel(err), "snapshot cannot be read, an earlier state is",
				"shard", shard, "entry", s.Entry, "err", err)
			damaged = append(damaged, s)
		default:
			return nil, err
		}
	}
	have := newLoaded(shard, pointer, damaged)
	return have, r.Replay(ctx, shard, have)
}

// unreadLevel is for operators: a snapshot that is not there any more has made room for a later one meanwhile.
func unreadLevel(err error) slog.Level {
	if errors.Is(err, store.ErrTrimmed) {
		return slog.LevelInfo
	}
	return slog.LevelError
}

// newLoaded is a shard before its first entry.
func newLoaded(shard int, pointer store.SnapshotPointer, damaged []store.SnapshotInfo) *Loaded {
	l := &Loaded{State: projection.NewShard(shard), damaged: damaged}
	l.PointTo(pointer)
	return l
}

// ErrContradicts reports a snapshot that is sound in itself and not the state after the entry that the journal has.
var ErrContradicts = errors.New("another history")

// restore reads a snapshot and the entry that it is the state after.
func (r *Loader) restore(ctx context.Context, shard int, s store.SnapshotInfo) (*Loaded, error) {
	state, err := r.Reader.Restore(ctx, shard, s)
	if err != nil {
		return nil, err
	}
	rec, err := r.Journal.Entry(ctx, shard, s.Entry)
	if err != nil {
		return nil, fmt.Errorf("read the entry of a snapshot: %w", err)
	}
	e, err := events.Decode(rec.Data)
	if err != nil {
		return nil, err
	}
	if state.Hash != e.Hash {
		return nil, fmt.Errorf("%w: %w: snapshot of entry %d has hash %s, the journal %s",
			events.ErrDamaged, ErrContradicts, s.Entry, state.Hash, e.Hash)
	}
	return &Loaded{State: state, Head: rec.Head}, nil
}

// Replay reads the journal behind the given state up to its end.
func (r *Loader) Replay(ctx context.Context, shard int, have *Loaded) error {
	return have.replay(shard, r.Journal.Read(ctx, shard, have.Head.Number+1))
}

// replay folds the entries of a shard. What comes next is read and decoded meanwhile.
func (l *Loaded) replay(shard int, journal iter.Seq2[store.Record, error]) error {
	for e, err := range prefetch(ledger.Decoded(shard, l.Head.Number+1, journal), entriesAhead) {
		if err != nil {
			return damagedAt(l.Head.Number+1, fmt.Errorf("read entry %d of shard %d: %w", l.Head.Number+1, shard, err))
		}
		if err := l.State.Replay(e.Entry); err != nil {
			return damagedAt(e.Number, fmt.Errorf("replay entry %d of shard %d: %w", e.Number, shard, err))
		}
		l.Head, l.tail = store.Head{Number: e.Number, Revision: e.Revision}, l.tail+int64(e.Size)
	}
	return nil
}

// archivedTo is the last entry that the archive holds of a shard; 0 where it cannot tell.
func (r *Loader) archivedTo(ctx context.Context, shard int) uint64 {
	if !r.Archives {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, archiveTimeout)
	defer cancel()
	head, err := r.Archive.Head(ctx, shard)
	if err != nil {
		level := slog.LevelInfo // it is asked again before a trim
		if errors.Is(err, events.ErrDamaged) {
			level = slog.LevelWarn
		}
		r.Log.Log(ctx, level, "the archive does not say whether it goes beyond the journal", "shard", shard, "err", err)
		return 0
	}
	return head.Entry
}

// cutOff wraps ErrCutOff when a snapshot or the archive, which was asked before the journal was read, goes beyond
// the end of the journal: all up to there was committed before. What an operator has given up is no error, whether
// it is recorded or waits for that.
func (r *Loader) cutOff(ctx context.Context, shard int, l *Loaded, p store.SnapshotPointer, archived uint64) error {
	snapshot := len(p.Kept) > 0 && p.Kept[0].Entry > l.Head.Number
	if !snapshot && archived <= l.Head.Number {
		return nil
	}
	if _, is, err := r.givenUp(ctx, shard, l); is || err != nil {
		return err
	}
	if snapshot {
		return fmt.Errorf("%w: that of shard %d ends with entry %d, and has a snapshot of entry %d",
			ErrCutOff, shard, l.Head.Number, p.Kept[0].Entry)
	}
	explained, err := r.explained(ctx, shard, l.State.CutAfter())
	if explained {
		return nil
	}
	cut := fmt.Errorf("%w: that of shard %d ends with entry %d, and its archive with entry %d",
		ErrCutOff, shard, l.Head.Number, archived)
	return errors.Join(cut, err)
}

// givenUp returns what an operator has left to the next owner of a shard, and whether that is the end of the
// journal as it was loaded.
func (r *Loader) givenUp(ctx context.Context, shard int, l *Loaded) (given store.Loss, is bool, err error) {
	given, err = r.Losses.Loss(ctx, shard)
	if errors.Is(err, events.ErrDamaged) {
		return given, false, nil
	}
	return given, err == nil && given.Revision != 0 && given.Entry == l.Head.Number && given.Hash == l.State.Hash, err
}

// explained reports whether a recorded loss is why the archive of a shard continues otherwise than its journal:
// both go back to one history, and behind one of the ends that were left the archive has another entry.
func (r *Loader) explained(ctx context.Context, shard int, ends []uint64) (bool, error) {
	for _, end := range ends {
		own, archived, err := r.both(ctx, shard, end+1)
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
		if is, err := r.related(ctx, shard); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// related reports whether journal and archive of a shard go back to one history: where the journal begins they have
// the same entry, or the same one before.
func (r *Loader) related(ctx context.Context, shard int) (bool, error) {
	first, err := r.Trimmer.First(ctx, shard)
	if err != nil {
		return false, err
	}
	own, archived, err := r.both(ctx, shard, max(first, 1))
	if own == nil || archived == nil || err != nil {
		return false, err
	}
	return own.Hash == archived.Hash || first > 1 && own.Prev == archived.Prev, nil
}

// both reads an entry of a shard as the journal has it, and as the archive does; nil = it has none.
func (r *Loader) both(ctx context.Context, shard int, number uint64) (own, archived *events.Entry, err error) {
	if own, err = r.journalled(ctx, shard, number); err != nil {
		return nil, nil, err
	}
	archived, err = r.archived(ctx, shard, number)
	return own, archived, err
}

// journalled reads an entry from the journal; nil = it is not there.
func (r *Loader) journalled(ctx context.Context, shard int, number uint64) (*events.Entry, error) {
	rec, err := r.Journal.Entry(ctx, shard, number)
	if errors.Is(err, store.ErrTrimmed) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return events.Decode(rec.Data)
}

// archived reads an entry from the archive; nil = it is not there.
func (r *Loader) archived(ctx context.Context, shard int, number uint64) (*events.Entry, error) {
	for rec, err := range r.Archive.ReadArchive(ctx, shard, number) {
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
