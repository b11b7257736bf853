// Package memlog keeps logs in memory. It is for tests and simulations: it keeps the whole contract of
// tasklog.Store, and what it holds ends with the process.
package memlog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"taskledger/events"
	"taskledger/tasklog"
)

// Store holds logs. Its methods may be called concurrently. It removes nothing of itself.
type Store struct {
	mu     sync.Mutex
	place  uint64 // of the last batch
	oldest events.Millis
	logs   map[tasklog.Attempt][]stored
}

type stored struct {
	place uint64
	tasklog.Batch
}

var _ tasklog.Store = (*Store)(nil)

// New returns a store without logs.
func New() *Store { return &Store{logs: map[tasklog.Attempt][]stored{}} }

// Empty removes the log of an attempt, as the bounds of a store do, and has the store tell that it has nothing from
// before a time.
func (s *Store) Empty(of tasklog.Attempt, oldest events.Millis) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logs, of)
	s.oldest = oldest
}

// Append implements tasklog.Store.
func (s *Store) Append(_ context.Context, of tasklog.Attempt, after tasklog.End, b tasklog.Batch) (tasklog.End, error) {
	if err := tasklog.CheckAppend(of, after, b); err != nil {
		return tasklog.End{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.logs[of]
	if n := len(all); n > 0 && all[n-1].place != after.Place {
		last := all[n-1]
		if last.First != b.First || !slices.Equal(last.Lines, b.Lines) {
			return tasklog.End{}, fmt.Errorf("append line %d: %w", b.First, tasklog.ErrTaken)
		}
		return tasklog.End{Line: last.Last(), Place: last.place}, nil
	}
	s.place++
	b.Lines = slices.Clone(b.Lines)
	s.logs[of] = append(all, stored{s.place, b})
	return tasklog.End{Line: b.Last(), Place: s.place}, nil
}

// Read implements tasklog.Reader.
func (s *Store) Read(_ context.Context, of tasklog.Attempt, r tasklog.Range) (got tasklog.Stretch, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.logs[of]
	if len(all) == 0 {
		return tasklog.Stretch{Oldest: s.oldest}, nil
	}
	got.Last = all[len(all)-1].Last()
	bytes := 0
	for _, b := range all {
		if b.Last() < r.From || b.Lines[len(b.Lines)-1].At < r.Since {
			got.Before = b.Last()
			continue
		}
		if r.Until != 0 && b.Lines[0].At > r.Until {
			break
		}
		if bytes >= cmp.Or(r.Bytes, tasklog.DefaultBytes) || len(got.Batches) == tasklog.MaxStretchBatches {
			got.More = true
			break
		}
		bytes += b.Bytes()
		got.Batches = append(got.Batches, b.Batch)
	}
	return got, nil
}

// Trim implements tasklog.Store.
func (s *Store) Trim(_ context.Context, of tasklog.Attempt, upTo tasklog.End) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[of] = slices.DeleteFunc(s.logs[of], func(b stored) bool { return b.place <= upTo.Place })
	if len(s.logs[of]) == 0 {
		delete(s.logs, of)
	}
	return nil
}

// Forget implements tasklog.Store.
func (s *Store) Forget(_ context.Context, shard uint16, life events.Ref, before uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.logs, func(of tasklog.Attempt, _ []stored) bool {
		all := life == tasklog.EveryLife || of.Life == life && (before == 0 || of.Number < before)
		return of.Shard == shard && all
	})
	return nil
}

// Lives implements tasklog.Store. There is one page.
func (s *Store) Lives(_ context.Context, shard uint16, page int) (lives []events.Ref, next int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of := range s.logs {
		if of.Shard == shard && page == 0 {
			lives = append(lives, of.Life)
		}
	}
	slices.Sort(lives)
	return slices.Compact(lives), 0, nil
}
