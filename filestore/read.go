package filestore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"taskledger/filestore/journal"
	"taskledger/store"
)

const (
	// pageEntries bounds the entries that are read at a time.
	pageEntries = 16
	// awhile bounds a wait that nothing but a change ends.
	awhile = time.Hour
)

// held returns the first entry of a shard that was not trimmed, and its last one. The first one is behind the last
// one where there is none.
func (s *Store) held(shard int) (first uint64, last store.Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := s.notes.of(shard)
	return notes.held(), s.shards[shard].last
}

// Last returns the last entry of a shard that there is; the zero value = there is none.
func (s *Store) Last(shard int) store.Head {
	_, last := s.held(shard)
	return last
}

// Read is described in store.Journal.
func (s *Store) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		err := s.checkShard(shard)
		if err == nil {
			_, last := s.held(shard)
			_, err = s.read(ctx, shard, max(from, 1), last.Number, yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(store.Record{}, fmt.Errorf("read shard %d from entry %d: %w", shard, from, err))
		}
	}
}

// errStopped ends a read whose consumer wants no more.
var errStopped = errors.New("stopped")

// read yields the entries from next to last, and returns the number of the one that was not yielded.
func (s *Store) read(
	ctx context.Context, shard int, next, last uint64, yield func(store.Record, error) bool,
) (uint64, error) {
	for {
		if err := ctx.Err(); err != nil {
			return next, err
		}
		page, err := s.page(shard, next, last)
		if err != nil || len(page) == 0 {
			return next, err
		}
		for _, r := range page {
			if !yield(r, nil) {
				return next, errStopped
			}
			next++
		}
	}
}

// page reads the entries from from to last, at most pageEntries of them; none where from is behind the end.
func (s *Store) page(shard int, from, last uint64) (page []store.Record, err error) {
	first, end := s.held(shard)
	if from < first && end.Number > 0 {
		return nil, fmt.Errorf("%w: entry %d, the first is %d", store.ErrTrimmed, from, first)
	}
	if from > last {
		return nil, nil
	}
	for e, err := range s.journal.Read(shard, from) {
		if err != nil {
			return nil, err
		}
		if e.Number != from+uint64(len(page)) {
			break // those before it have gone
		}
		page = append(page, recordOf(e))
		if len(page) == pageEntries || e.Number == last {
			return page, nil
		}
	}
	if len(page) == 0 { // it has gone since
		return nil, fmt.Errorf("%w: entry %d", store.ErrTrimmed, from)
	}
	return page, nil
}

func recordOf(e journal.Entry) store.Record {
	return store.Record{Head: store.Head{Number: e.Number, Revision: e.Revision}, Data: e.Data}
}

// Backward is described in store.Journal.
func (s *Store) Backward(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		err := s.checkShard(shard)
		for next := from; next > 0 && err == nil; {
			var page []store.Record
			if err = ctx.Err(); err == nil {
				page, err = s.pageBefore(shard, next)
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				next--
			}
		}
		if err != nil {
			yield(store.Record{}, fmt.Errorf("read shard %d backward from entry %d: %w", shard, from, err))
		}
	}
}

// pageBefore reads the entries from from down, newest first and at most pageEntries of them.
func (s *Store) pageBefore(shard int, from uint64) ([]store.Record, error) {
	first, last := s.held(shard)
	if from < first || from > last.Number {
		return nil, fmt.Errorf("%w: entry %d", store.ErrTrimmed, from)
	}
	page, err := s.page(shard, max(first, from-min(from, pageEntries)+1), from)
	if err != nil {
		return nil, err
	}
	slices.Reverse(page)
	return page, nil
}

// Entry is described in store.Journal.
func (s *Store) Entry(ctx context.Context, shard int, number uint64) (store.Record, error) {
	err := ctx.Err()
	if err == nil {
		err = s.checkShard(shard)
	}
	var r store.Record
	if err == nil {
		r, err = s.entry(shard, number)
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("read entry %d of shard %d: %w", number, shard, err)
	}
	return r, nil
}

func (s *Store) entry(shard int, number uint64) (store.Record, error) {
	first, last := s.held(shard)
	if number < first || number > last.Number {
		return store.Record{}, store.ErrTrimmed
	}
	page, err := s.page(shard, number, number)
	if err != nil {
		return store.Record{}, err
	}
	return page[0], nil
}

// Follow is described in store.Journal.
func (s *Store) Follow(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		next, err := max(from, 1), s.checkShard(shard)
		for err == nil {
			s.mu.Lock()
			last, more := s.shards[shard].last, s.await(topic{of: ofJournal, shard: shard})
			s.mu.Unlock()
			next, err = s.read(ctx, shard, next, last.Number, yield)
			if err == nil && !pause(ctx, more, awhile) {
				return
			}
		}
		if !errors.Is(err, errStopped) && ctx.Err() == nil {
			yield(store.Record{}, fmt.Errorf("follow shard %d: at entry %d: %w", shard, next, err))
		}
	}
}
