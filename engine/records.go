package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"taskledger/events"
	"taskledger/store"
)

// records is a shard's whole journal: what the archive holds of it, then what the store does.
type records struct {
	journal   store.Journal
	snapshots store.Snapshots
	trimmer   store.Trimmer
	repairer  store.Repairer
	archive   store.ArchiveReader // nil: what was trimmed is gone
	all       bool                // journals are trimmed only of what is in the archive
}

func recordsOf(s store.Store, archive store.ArchiveReader, all bool) records {
	return records{s, s, s, s, archive, all}
}

func (m *member) records() records {
	return records{m.journal, m.snapshots, m.trimmer, m.cfg.Store, m.cfg.reader(), m.cfg.archives()}
}

// unarchived says what it means that the archive cannot be read, where the journal does not hold an entry. Where there is
// no archive, and entries are archived before they are trimmed, it is away.
func (r records) unarchived(ctx context.Context, shard int, number uint64, unread error) error {
	if !errors.Is(unread, store.ErrNoArchive) {
		return unread // it is away or damaged: the entry is not gone
	}
	first, err := r.first(ctx, shard)
	if err != nil {
		return err
	}
	if r.all && number < first {
		return fmt.Errorf("%w: the journal begins with entry %d: %w", ErrUnavailable, first, unread)
	}
	return fmt.Errorf("%w: entry %d: %w", store.ErrTrimmed, number, unread)
}

// Read is Journal.Read, from the archive where the journal was trimmed.
func (r records) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
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

// pass yields the records of seq and counts them in next. It returns the error that ended seq, or that the consumer has
// stopped.
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

// Entry is Journal.Entry, from the archive where the journal was trimmed.
func (r records) Entry(ctx context.Context, shard int, number uint64) (store.Record, error) {
	rec, err := r.journal.Entry(ctx, shard, number)
	if !errors.Is(err, store.ErrTrimmed) || r.archive == nil {
		return rec, err
	}
	for rec, unread := range r.archive.ReadArchive(ctx, shard, number) {
		switch {
		case unread != nil:
			return store.Record{}, r.unarchived(ctx, shard, number, unread)
		case rec.Number == number:
			return rec, nil
		}
		break
	}
	return store.Record{}, err
}

// begins returns the number of the first entry from which on all are held: in the archive, which may begin late, or in the
// store.
func (r records) begins(ctx context.Context, shard int) (uint64, error) {
	first, err := r.first(ctx, shard)
	if err != nil || first == 1 || r.archive == nil {
		return first, err
	}
	held := func(number uint64) (bool, error) {
		_, err := r.Entry(ctx, shard, number)
		switch {
		case err == nil || errors.Is(err, events.ErrDamaged): // whoever reads it finds out
			return true, nil
		case errors.Is(err, store.ErrTrimmed):
			return false, nil
		}
		return false, err
	}
	if is, err := held(1); is || err != nil {
		return 1, err
	}
	absent, there := uint64(1), first
	for middle := first - 1; absent+1 < there; middle = absent + (there-absent)/2 {
		is, err := held(middle)
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

// Follow is Journal.Follow, from the archive where the journal was trimmed.
func (r records) Follow(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
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
