package world

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/store"
)

// shelf is an archive in memory. It implements engine.Archive.
type shelf struct {
	mu       sync.Mutex
	sequence uint64            // of the last segment
	segments map[int][]segment // by shard, in order
}

// segment is what one call archived.
type segment struct {
	after, head store.ArchiveHead
	entries     []store.Record
	tasks       map[events.TaskID]bool // in the entries
}

func newShelf() *shelf { return &shelf{segments: map[int][]segment{}} }

// of returns the segments of a shard. They never change.
func (a *shelf) of(shard int) []segment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.segments[shard])
}

// Head implements engine.Archiver.
func (a *shelf) Head(_ context.Context, shard int) (head store.ArchiveHead, _ error) {
	if all := a.of(shard); len(all) > 0 {
		head = all[len(all)-1].head
	}
	return head, nil
}

// Archive implements engine.Archiver.
func (a *shelf) Archive(_ context.Context, shard int, after store.ArchiveHead, entries []store.Record) (store.ArchiveHead, error) {
	s, err := newSegment(shard, after, entries)
	if err != nil {
		return after, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.segments[shard]
	if at := slices.IndexFunc(all, func(there segment) bool { return there.after == after }); at >= 0 && slices.EqualFunc(all[at].entries, entries, sameRecord) {
		return all[at].head, nil
	}
	if len(all) > 0 && all[len(all)-1].head != after || len(all) == 0 && after.Sequence != 0 {
		return after, fmt.Errorf("archive of shard %d does not end with entry %d: %w", shard, after.Entry, store.ErrConflict)
	}
	a.sequence++
	s.head.Sequence = a.sequence
	a.segments[shard] = append(all, s)
	return s.head, nil
}

// newSegment makes a segment that has no place yet.
func newSegment(shard int, after store.ArchiveHead, entries []store.Record) (segment, error) {
	s := segment{after: after, head: after, entries: entries, tasks: map[events.TaskID]bool{}}
	for _, r := range entries {
		e, err := events.Decode(r.Data)
		if err != nil {
			return s, fmt.Errorf("entry %d: %w", r.Number, err)
		}
		if int(e.Shard) != shard || e.Number != r.Number {
			return s, fmt.Errorf("entry %d of shard %d as entry %d of shard %d: %w", e.Number, e.Shard, r.Number, shard, events.ErrDamaged)
		}
		if s.head.Entry++; s.head.Entry != r.Number {
			return s, fmt.Errorf("entry %d instead of %d: %w", r.Number, s.head.Entry, store.ErrConflict)
		}
		for i := range e.Events {
			s.tasks[e.Events[i].Task] = true
		}
	}
	return s, nil
}

// Confirm implements engine.Archiver.
func (a *shelf) Confirm(_ context.Context, shard int, head store.ArchiveHead, entries []store.Record) error {
	for _, s := range a.of(shard) {
		if s.head == head && slices.EqualFunc(s.entries, entries, sameRecord) {
			return nil
		}
	}
	return fmt.Errorf("archive of shard %d differs up to entry %d: %w", shard, head.Entry, store.ErrConflict)
}

func sameRecord(a, b store.Record) bool { return a.Head == b.Head && bytes.Equal(a.Data, b.Data) }

// Settled implements engine.Archiver.
func (a *shelf) Settled() time.Duration { return 0 }

// ReadArchive implements engine.ArchiveReader.
func (a *shelf) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	all := a.of(shard)
	return func(yield func(store.Record, error) bool) {
		if len(all) > 0 && max(from, 1) < all[0].entries[0].Number {
			yield(store.Record{}, store.ErrTrimmed)
			return
		}
		for _, s := range all {
			for _, r := range s.entries {
				if err := ctx.Err(); err != nil {
					yield(store.Record{}, err)
					return
				}
				if r.Number >= from && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// FindArchived implements engine.ArchiveReader.
func (a *shelf) FindArchived(_ context.Context, shard int, task events.TaskID) iter.Seq2[store.Record, error] {
	all := a.of(shard)
	return func(yield func(store.Record, error) bool) {
		for _, s := range slices.Backward(all) {
			if !s.tasks[task] {
				continue
			}
			for _, r := range slices.Backward(s.entries) {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}
