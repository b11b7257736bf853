package world

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"taskledger/engine"
	"taskledger/events"
)

// shelf is an archive in memory. It implements engine.Archive.
type shelf struct {
	mu      sync.Mutex
	records [][]engine.Record // by shard, from entry 1 on
}

func newShelf(shards int) *shelf { return &shelf{records: make([][]engine.Record, shards)} }

func (a *shelf) of(shard int) []engine.Record {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.records[shard])
}

// Head implements engine.Archiver.
func (a *shelf) Head(_ context.Context, shard int) (engine.ArchiveHead, error) {
	n := uint64(len(a.of(shard)))
	return engine.ArchiveHead{Entry: n, Sequence: n}, nil
}

// Archive implements engine.Archiver.
func (a *shelf) Archive(_ context.Context, shard int, after engine.ArchiveHead, entries []engine.Record) (engine.ArchiveHead, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := uint64(len(a.records[shard])); n != after.Entry || entries[0].Number != n+1 {
		return after, fmt.Errorf("archive of shard %d ends with entry %d: %w", shard, n, engine.ErrConflict)
	}
	a.records[shard] = append(a.records[shard], entries...)
	n := uint64(len(a.records[shard]))
	return engine.ArchiveHead{Entry: n, Sequence: n}, nil
}

// Confirm implements engine.Archiver.
func (a *shelf) Confirm(_ context.Context, shard int, head engine.ArchiveHead, entries []engine.Record) error {
	stored := a.of(shard)
	if first := entries[0].Number; first > 0 && head.Entry <= uint64(len(stored)) && head.Entry+1 == first+uint64(len(entries)) &&
		slices.EqualFunc(stored[first-1:head.Entry], entries, sameRecord) {
		return nil
	}
	return fmt.Errorf("archive of shard %d differs up to entry %d: %w", shard, head.Entry, engine.ErrConflict)
}

func sameRecord(a, b engine.Record) bool { return a.Head == b.Head && bytes.Equal(a.Data, b.Data) }

// Settled implements engine.Archiver.
func (a *shelf) Settled() time.Duration { return 0 }

// ReadArchive implements engine.ArchiveReader.
func (a *shelf) ReadArchive(_ context.Context, shard int, from uint64) iter.Seq2[engine.Record, error] {
	return func(yield func(engine.Record, error) bool) {
		all := a.of(shard)
		for _, r := range all[min(max(from, 1)-1, uint64(len(all))):] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// FindArchived implements engine.ArchiveReader.
func (a *shelf) FindArchived(_ context.Context, shard int, _ events.TaskID) iter.Seq2[engine.Record, error] {
	return func(yield func(engine.Record, error) bool) {
		for _, r := range slices.Backward(a.of(shard)) {
			if !yield(r, nil) {
				return
			}
		}
	}
}
