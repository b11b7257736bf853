package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"taskledger/events"
	"taskledger/store"
)

// Reader reads the journal and the archive of each shard as one: first what the archive holds, then what the store
// holds. Its methods may be called concurrently.
type Reader struct {
	journal   Journal
	snapshots Snapshots
	archive   store.ArchiveReader // nil: what was trimmed is gone
	archived  bool                // entries are trimmed only once the archive has them
	firsts    sync.Map            // shard -> number of the first entry when that was last read: it never falls
}

// NewReader returns a reader; archive and archived are as in Config.
func NewReader(journal Journal, snapshots Snapshots, archive store.ArchiveReader, archived bool) *Reader {
	return &Reader{journal: journal, snapshots: snapshots, archive: archive, archived: archived}
}

// First returns the number of the first entry that the store holds; 1 when it holds none.
func (r *Reader) First(ctx context.Context, shard int) (uint64, error) {
	first, err := r.journal.First(ctx, shard)
	if first = max(first, 1); err == nil {
		r.firsts.Store(shard, first)
	}
	return first, err
}

// Event reads one event. It wraps events.ErrDamaged if the entry has no such event, and has the errors of Entry.
func (r *Reader) Event(ctx context.Context, shard int, ref events.Ref) (*events.Event, error) {
	rec, err := r.Entry(ctx, shard, ref.Entry())
	if err != nil {
		return nil, fmt.Errorf("read event %s: %w", events.Position{Shard: uint16(shard), Ref: ref}, err)
	}
	ev, err := events.DecodeEvent(rec.Data, ref.Index())
	if err == nil && ev == nil {
		err = fmt.Errorf("%w: entry %d of shard %d has no event %d", events.ErrDamaged, ref.Entry(), shard, ref.Index())
	}
	return ev, err
}

// unarchived classifies the failure to read an entry from the archive that the journal lacks. If there is no archive
// although entries are archived before they are trimmed, the archive is away: store.ErrUnavailable. Otherwise the entry
// is gone: store.ErrTrimmed.
func (r *Reader) unarchived(ctx context.Context, shard int, number uint64, cause error) error {
	if !errors.Is(cause, store.ErrNoArchive) {
		return cause // the archive is away or damaged: the entry may still be there
	}
	first, err := r.First(ctx, shard)
	if err != nil {
		return err
	}
	if r.archived && number < first {
		return fmt.Errorf("%w: the journal begins with entry %d: %w", store.ErrUnavailable, first, cause)
	}
	return fmt.Errorf("%w: entry %d: %w", store.ErrTrimmed, number, cause)
}

// errOtherwise reports an archive that leads to another history than the one that the journal continues.
var errOtherwise = fmt.Errorf("%w: the %w", events.ErrDamaged, store.ErrConflict)

// Read is store.Journal.Read, and reads from the archive what was trimmed from the journal, and nothing that the
// journal holds. It yields an error that wraps store.ErrConflict and events.ErrDamaged where the journal does not
// continue what the archive holds.
func (r *Reader) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		next := max(from, 1)
		seam := seam{shard: shard}
		for {
			err, ended := pass(seam.after(r.journal.Read(ctx, shard, next)), &next, yield)
			if ended || err == nil {
				return
			}
			if !errors.Is(err, store.ErrTrimmed) || r.archive == nil {
				yield(store.Record{}, err)
				return
			}
			if err, ended = pass(seam.note(r.trimmed(ctx, shard, next)), &next, yield); err != nil && !ended {
				yield(store.Record{}, err)
			}
			if ended || err != nil {
				return
			}
		}
	}
}

// trimmed yields the entries from one on, which the journal lacks or has lacking ones behind, up to where the journal
// can be read on.
func (r *Reader) trimmed(ctx context.Context, shard int, next uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		first, err := r.First(ctx, shard)
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		if next < first {
			err, ended := pass(until(r.archive.ReadArchive(ctx, shard, next), first), &next, yield)
			switch {
			case ended:
			case err != nil:
				yield(store.Record{}, r.unarchived(ctx, shard, next, err))
			case next < first:
				yield(store.Record{}, fmt.Errorf("%w: entry %d, neither in the archive: the journal begins with entry %d",
					store.ErrTrimmed, next, first))
			}
			return
		}
		for gap := false; !gap; next++ { // some entry in the middle of the journal is gone
			rec, err := r.journal.Entry(ctx, shard, next)
			if gap = errors.Is(err, store.ErrTrimmed); gap {
				rec, err = r.fromArchive(ctx, shard, next, err)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// until ends a sequence before the entry with a number.
func until(seq iter.Seq2[store.Record, error], number uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for rec, err := range seq {
			if err == nil && rec.Number >= number || !yield(rec, err) || rec.Number+1 == number {
				return
			}
		}
	}
}

// upToGap is Read, and yields what comes before a missing entry one by one: Read ends at the page that lacks it.
func (r *Reader) upToGap(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		next := max(from, 1)
		err, ended := pass(r.Read(ctx, shard, next), &next, yield)
		for ; err != nil && !ended; next++ {
			rec, failed := store.Record{}, err
			if errors.Is(err, store.ErrTrimmed) {
				rec, failed = r.Entry(ctx, shard, next)
			}
			if !yield(rec, failed) || failed != nil {
				return
			}
		}
	}
}

// seam checks that the journal continues the archive where it takes over.
type seam struct {
	shard    int
	archived store.Record // the last record that the archive may have given; its number is 0 = none
}

// note remembers the last record of a sequence.
func (s *seam) note(seq iter.Seq2[store.Record, error]) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for rec, err := range seq {
			if err == nil {
				s.archived = rec
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// after yields what follows in the journal, if it continues the last record of the archive.
func (s *seam) after(seq iter.Seq2[store.Record, error]) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for rec, err := range seq {
			if err == nil && s.archived.Number != 0 && rec.Number == s.archived.Number+1 {
				err = continues(s.shard, s.archived, rec)
			}
			s.archived = store.Record{}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// continues wraps errOtherwise if the journal holds an entry that does not follow the one that the archive holds
// before it. Entries that cannot be read are the matter of whoever reads them.
func continues(shard int, archived, rec store.Record) error {
	before, unread := events.Decode(archived.Data)
	e, damaged := events.Decode(rec.Data)
	if unread != nil || damaged != nil || e.Prev == before.Hash {
		return nil
	}
	return fmt.Errorf("shard %d: %w: entry %d of the journal follows hash %s, entry %d of the archive has %s",
		shard, errOtherwise, rec.Number, e.Prev, archived.Number, before.Hash)
}

// pass yields the records of seq and sets next to the number after the last of them. It returns the error that ended
// seq, or that the consumer has stopped.
func pass(
	seq iter.Seq2[store.Record, error],
	next *uint64,
	yield func(store.Record, error) bool,
) (err error, stopped bool) {
	for rec, err := range seq {
		if err != nil {
			return err, false
		}
		*next = rec.Number + 1
		if !yield(rec, nil) {
			return nil, true
		}
	}
	return nil, false
}

// Entry is store.Journal.Entry, and reads from the archive what was trimmed from the journal.
func (r *Reader) Entry(ctx context.Context, shard int, number uint64) (store.Record, error) {
	rec, err := r.journal.Entry(ctx, shard, number)
	if !errors.Is(err, store.ErrTrimmed) || r.archive == nil {
		return rec, err
	}
	if written, unread := r.written(ctx, shard, number); unread != nil || !written {
		return store.Record{}, cmp.Or(unread, err)
	}
	return r.fromArchive(ctx, shard, number, err)
}

// fromArchive reads one entry from the archive, which the journal lacks with the error that is given.
func (r *Reader) fromArchive(ctx context.Context, shard int, number uint64, lacks error) (store.Record, error) {
	for rec, err := range r.archive.ReadArchive(ctx, shard, number) {
		switch {
		case err != nil:
			return store.Record{}, r.unarchived(ctx, shard, number, err)
		case rec.Number == number:
			return rec, nil
		}
		break
	}
	return store.Record{}, lacks
}

// written reports whether the journal has gone past an entry that it lacks. What comes after the end of the journal
// is another history's, if the archive has it: the store was restored from a backup.
func (r *Reader) written(ctx context.Context, shard int, number uint64) (bool, error) {
	if first, known := r.firsts.Load(shard); known && number < first.(uint64) {
		return true, nil
	}
	first, err := r.First(ctx, shard)
	if err != nil || number < first {
		return err == nil, err
	}
	for _, err := range r.journal.Read(ctx, shard, number) {
		if err != nil && !errors.Is(err, store.ErrTrimmed) {
			return false, err
		}
		return err != nil, nil // a record: it has just been written, or an entry behind it is missing
	}
	return false, nil
}

// Begins returns the number of the first entry of those that can be read without a gap, from the archive, which may
// lack the first ones, or from the store.
func (r *Reader) Begins(ctx context.Context, shard int) (uint64, error) {
	first, err := r.First(ctx, shard)
	if err != nil || first == 1 || r.archive == nil {
		return first, err
	}
	readable := func(number uint64) (bool, error) {
		_, err := r.Entry(ctx, shard, number)
		switch {
		case err == nil || errors.Is(err, events.ErrDamaged): // it is there, and its reader reports the damage
			return true, nil
		case errors.Is(err, store.ErrTrimmed):
			return false, nil
		}
		return false, err
	}
	if is, err := readable(1); is || err != nil {
		return 1, err
	}
	absent, there := uint64(1), first
	for middle := first - 1; absent+1 < there; middle = absent + (there-absent)/2 {
		is, err := readable(middle)
		switch {
		case err != nil:
			return 0, err
		case is:
			there = middle
		default:
			absent = middle
		}
	}
	return there, nil
}

// Follow is store.Journal.Follow, and reads from the archive what was trimmed from the journal.
func (r *Reader) Follow(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		next := max(from, 1)
		for {
			if err, ended := pass(r.Read(ctx, shard, next), &next, yield); ended {
				return
			} else if err != nil {
				yield(store.Record{}, err)
				return
			}
			err, ended := pass(r.journal.Follow(ctx, shard, next), &next, yield)
			if ended || err == nil {
				return
			}
			if !errors.Is(err, store.ErrTrimmed) || r.archive == nil {
				yield(store.Record{}, err)
				return
			}
		}
	}
}
