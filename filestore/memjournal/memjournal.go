// Package memjournal keeps a journal in memory: for tests, and for programs that need what they did no longer than
// they run. It keeps the contract of journal.Journaler, except that its entries and snapshots end with the process.
package memjournal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"taskledger/filestore/journal"
)

// ErrClosed reports a write after Close.
var ErrClosed = errors.New("journal is closed")

// Journal is a journal of any number of shards. The zero value is an empty one. Its methods may be called
// concurrently, as journal.Journaler allows it.
type Journal struct {
	mu        sync.Mutex
	entries   map[int][]journal.Entry // by shard, in order
	snapshots map[journal.Key]journal.Snapshot
	closed    bool
}

var _ journal.Journaler = (*Journal)(nil)

// Append implements journal.Journaler.
func (j *Journal) Append(e journal.Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return fmt.Errorf("append entry %d of shard %d: %w", e.Number, e.Shard, ErrClosed)
	}
	if j.entries == nil {
		j.entries = map[int][]journal.Entry{}
	}
	e.Data = bytes.Clone(e.Data)
	j.entries[e.Shard] = append(j.entries[e.Shard], e)
	return nil
}

// Read implements journal.Journaler.
func (j *Journal) Read(shard int, from uint64) iter.Seq2[journal.Entry, error] {
	j.mu.Lock()
	held := slices.Clip(j.entries[shard])
	j.mu.Unlock()
	return func(yield func(journal.Entry, error) bool) {
		if len(held) == 0 || from < held[0].Number || from-held[0].Number >= uint64(len(held)) {
			return
		}
		for _, e := range held[from-held[0].Number:] {
			e.Data = bytes.Clone(e.Data)
			if !yield(e, nil) {
				return
			}
		}
	}
}

// WriteSnapshot implements journal.Journaler. It forgets the entries that are needed no more.
func (j *Journal) WriteSnapshot(k journal.Key, s journal.Snapshot) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return fmt.Errorf("write snapshot %d of shard %d: %w", k.Slot, k.Shard, ErrClosed)
	}
	if j.snapshots == nil {
		j.snapshots = map[journal.Key]journal.Snapshot{}
	}
	j.snapshots[k] = clone(s)
	held := j.entries[k.Shard]
	at, _ := slices.BinarySearchFunc(held, s.First, func(e journal.Entry, first uint64) int {
		return cmp.Compare(e.Number, first)
	})
	if at > 0 {
		j.entries[k.Shard] = slices.Clone(held[at:])
	}
	return nil
}

// ReadSnapshot implements journal.Journaler.
func (j *Journal) ReadSnapshot(k journal.Key) (journal.Snapshot, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return clone(j.snapshots[k]), nil
}

func clone(s journal.Snapshot) journal.Snapshot {
	s.Parts = slices.Clone(s.Parts)
	for i, part := range s.Parts {
		s.Parts[i] = bytes.Clone(part)
	}
	return s
}

// Close implements journal.Journaler. What is held can be read until nobody refers to the journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	return nil
}
