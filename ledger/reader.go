package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"taskledger/events"
	"taskledger/store"
)

// Reader reads the journal and the archive of each shard as one: first what the archive holds, then what the store holds. Its methods
// may be called concurrently.
type Reader struct {
	journal   Journal
	snapshots Snapshots
	archive   store.ArchiveReader // nil: what was trimmed is gone
	archived  bool                // entries are trimmed only once the archive has them
}

// NewReader returns a reader; archive and archived are as in Config.
func NewReader(journal Journal, snapshots Snapshots, archive store.ArchiveReader, archived bool) *Reader {
	return &Reader{journal, snapshots, archive, archived}
}

// First returns the number of the first entry that the store holds; 1 when it holds none.
func (r *Reader) First(ctx context.Context, shard int) (uint64, error) {
	first, err := r.journal.First(ctx, shard)
	return max(first, 1), err
}

// Event reads one event. It wraps events.ErrDamaged if the entry has no such event, and has the errors of Entry.
func (r *Reader) Event(ctx context.Context, shard int, ref events.Ref) (*events.Event, error) {
	rec, err := r.Entry(ctx, shard, ref.Entry())
	if err != nil {
		return nil, fmt.Errorf("read event %s: %w", events.Position{Shard: uint16(shard), Ref: ref}, err)
	}
	e, err := events.Decode(rec.Data)
	if err != nil {
		return nil, err
	}
	if ref.Index() >= len(e.Events) {
		return nil, fmt.Errorf("%w: entry %d of shard %d has no event %d", events.ErrDamaged, ref.Entry(), shard, ref.Index())
	}
	return &e.Events[ref.Index()], nil
}

// unarchived classifies the failure to read an entry from the archive that the journal lacks. If there is no archive although entries
// are archived before they are trimmed, the archive is away: store.ErrUnavailable. Otherwise the entry is gone: store.ErrTrimmed.
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

// Read is store.Journal.Read, and reads from the archive what was trimmed from the journal.
func (r *Reader) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		next := max(from, 1)
		for {
			err, ended := pass(r.journal.Read(ctx, shard, next), &next, yield)
			if ended || err == nil {
				return
			}
			if !errors.Is(err, store.ErrTrimmed) || r.archive == nil {
				yield(store.Record{}, err)
				return
			}
			before := next
			fromArchive, ended := pass(r.archive.ReadArchive(ctx, shard, next), &next, yield)
			switch {
			case ended:
				return
			case fromArchive != nil:
				yield(store.Record{}, r.unarchived(ctx, shard, next, fromArchive))
				return
			case next == before:
				yield(store.Record{}, fmt.Errorf("neither in the archive: %w", err))
				return
			}
		}
	}
}

// pass yields the records of seq and sets next to the number after the last of them. It returns the error that ended seq, or that
// the consumer has stopped.
func pass(seq iter.Seq2[store.Record, error], next *uint64, yield func(store.Record, error) bool) (err error, stopped bool) {
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
	for rec, failed := range r.archive.ReadArchive(ctx, shard, number) {
		switch {
		case failed != nil:
			return store.Record{}, r.unarchived(ctx, shard, number, failed)
		case rec.Number == number:
			return rec, nil
		}
		break
	}
	return store.Record{}, err
}

// Begins returns the number of the first entry of those that can be read without a gap, from the archive, which may lack the first
// ones, or from the store.
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
