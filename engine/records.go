package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// records is a shard's whole journal: what the archive holds of it, then what the store does.
type records struct {
	store   Store
	archive ArchiveReader // nil: what was trimmed is gone
}

func (m *member) records() records { return records{m.store, m.cfg.reader()} }

// Read is Journal.Read, from the archive where the journal was trimmed.
func (r records) Read(ctx context.Context, shard int, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		next := max(from, 1)
		for {
			err, ended := pass(r.store.Read(ctx, shard, next), &next, yield)
			if ended || err == nil {
				return
			}
			if !errors.Is(err, ErrTrimmed) || r.archive == nil {
				yield(Record{}, err)
				return
			}
			before := next
			fromArchive, ended := pass(r.archive.ReadArchive(ctx, shard, next), &next, yield)
			switch {
			case ended:
				return
			case fromArchive != nil:
				yield(Record{}, fromArchive)
				return
			case next == before:
				yield(Record{}, fmt.Errorf("neither in the archive: %w", err))
				return
			}
		}
	}
}

// pass yields the records of seq and counts them in next. It returns the error that ended seq, or that the consumer has
// stopped.
func pass(seq iter.Seq2[Record, error], next *uint64, yield func(Record, error) bool) (err error, stopped bool) {
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
func (r records) Entry(ctx context.Context, shard int, number uint64) (Record, error) {
	rec, err := r.store.Entry(ctx, shard, number)
	if !errors.Is(err, ErrTrimmed) || r.archive == nil {
		return rec, err
	}
	for rec, unread := range r.archive.ReadArchive(ctx, shard, number) {
		switch {
		case unread != nil:
			return Record{}, unread // where the archive is away or damaged, the entry is not gone
		case rec.Number == number:
			return rec, nil
		}
		break
	}
	return Record{}, err
}

// Follow is Journal.Follow, from the archive where the journal was trimmed.
func (r records) Follow(ctx context.Context, shard int, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		next := max(from, 1)
		for {
			if err, ended := pass(r.Read(ctx, shard, next), &next, yield); ended {
				return
			} else if err != nil {
				yield(Record{}, err)
				return
			}
			err, ended := pass(r.store.Follow(ctx, shard, next), &next, yield)
			if ended || err == nil {
				return
			}
			if !errors.Is(err, ErrTrimmed) || r.archive == nil {
				yield(Record{}, err)
				return
			}
		}
	}
}
