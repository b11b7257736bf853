// Package memarchive keeps an archive in memory. It is for tests, simulations and programs that need their history no
// longer than they run: it keeps the whole contract of store.Archive, except that its entries end with the process.
package memarchive

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/store"
)

// Archive is an archive of any number of shards. Its methods may be called concurrently. The data of records are
// kept and returned without being copied, so neither writers nor readers may alter them.
type Archive struct {
	mu       sync.Mutex
	sequence uint64            // of the last segment
	segments map[int][]segment // by shard, in order
}

var _ store.Archive = (*Archive)(nil)

// Segment holds the entries that one call of Archive added.
type Segment struct {
	After, Head store.ArchiveHead // the ends of the archive before and after it
	Entries     []store.Record
}

type segment struct {
	Segment
	tasks map[events.TaskID]bool // in the entries; nil = any
}

// New returns an empty archive.
func New() *Archive { return &Archive{segments: map[int][]segment{}} }

// of returns the segments of a shard. They never change.
func (a *Archive) of(shard int) []segment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.segments[shard])
}

// counting returns the segments of a shard without the entries that count no more, since the archive began anew
// before them.
func (a *Archive) counting(shard int) []segment {
	all := slices.Clone(a.of(shard))
	before := uint64(math.MaxUint64) // entries count that stand before this one
	for i, s := range slices.Backward(all) {
		all[i].Entries = slices.DeleteFunc(slices.Clone(s.Entries), func(r store.Record) bool { return r.Number >= before })
		if s.After.Sequence != 0 && s.Head.Begins == s.After.Sequence && len(s.Entries) > 0 {
			before = min(before, s.Entries[0].Number)
		}
	}
	return all
}

// Records returns the archived entries of a shard, from the one on with which its archive began anew last.
func (a *Archive) Records(shard int) (all []store.Record) {
	for _, s := range a.counting(shard) {
		all = append(all, s.Entries...)
	}
	return all
}

// Alter replaces the segments of a shard with those that alter returns; it passes copies of the present ones.
// Nothing is checked, so that tests can damage, forge or lose parts of an archive. alter may call the archive, but
// not Alter, of which one call for a shard may run at a time; what is archived meanwhile follows what it returns.
func (a *Archive) Alter(shard int, alter func([]Segment) []Segment) {
	before := a.of(shard)
	var copies []Segment
	for _, s := range before {
		s.Entries = slices.Clone(s.Entries)
		for i := range s.Entries {
			s.Entries[i].Data = bytes.Clone(s.Entries[i].Data)
		}
		copies = append(copies, s.Segment)
	}
	var altered []segment
	for _, s := range alter(copies) {
		tasks, err := tasksIn(shard, s.Entries)
		if err != nil {
			tasks = nil
		}
		altered = append(altered, segment{s, tasks})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.segments[shard] = append(altered, a.segments[shard][len(before):]...)
}

// Head implements store.Archiver.
func (a *Archive) Head(_ context.Context, shard int) (head store.ArchiveHead, _ error) {
	if all := a.of(shard); len(all) > 0 {
		head = all[len(all)-1].Head
	}
	return head, nil
}

// Archive implements store.Archiver.
func (a *Archive) Archive(
	_ context.Context,
	shard int,
	after store.ArchiveHead,
	entries []store.Record,
) (store.ArchiveHead, error) {
	if err := store.CheckSegment(entries); err != nil {
		return after, fmt.Errorf("archive entries of shard %d after %d: %w", shard, after.Entry, err)
	}
	tasks, err := tasksIn(shard, entries)
	if err != nil {
		return after, err
	}
	head := after
	for _, r := range entries {
		if head.Entry++; head.Entry != r.Number {
			return after, fmt.Errorf("entry %d instead of %d: %w", r.Number, head.Entry, store.ErrConflict)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.segments[shard]
	at := slices.IndexFunc(all, func(there segment) bool { return there.After == after })
	if at >= 0 && slices.EqualFunc(all[at].Entries, entries, sameRecord) {
		return all[at].Head, nil
	}
	var end store.ArchiveHead
	if len(all) > 0 {
		end = all[len(all)-1].Head
	}
	anew := after.Sequence != 0 && after.Begins == after.Sequence && end.Sequence == after.Sequence
	if len(all) > 0 && end != after && !anew || len(all) == 0 && after.Sequence != 0 {
		return after, fmt.Errorf("archive of shard %d does not end with entry %d: %w", shard, after.Entry, store.ErrConflict)
	}
	a.sequence++
	head.Sequence = a.sequence
	a.segments[shard] = append(all, segment{Segment{after, head, slices.Clone(entries)}, tasks})
	return head, nil
}

// tasksIn returns the tasks that entries hold events of. It fails where one is no entry of the shard.
func tasksIn(shard int, entries []store.Record) (map[events.TaskID]bool, error) {
	tasks := map[events.TaskID]bool{}
	for _, r := range entries {
		e, err := events.Decode(r.Data)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", r.Number, err)
		}
		if int(e.Shard) != shard || e.Number != r.Number {
			return nil, fmt.Errorf("entry %d of shard %d as entry %d of shard %d: %w",
				e.Number, e.Shard, r.Number, shard, events.ErrDamaged)
		}
		for i := range e.Events {
			tasks[e.Events[i].Task] = true
		}
	}
	return tasks, nil
}

// Confirm implements store.Archiver.
func (a *Archive) Confirm(_ context.Context, shard int, head store.ArchiveHead, entries []store.Record) error {
	for _, s := range a.of(shard) {
		if s.Head == head && slices.EqualFunc(s.Entries, entries, sameRecord) {
			return nil
		}
	}
	return fmt.Errorf("archive of shard %d differs up to entry %d: %w", shard, head.Entry, store.ErrConflict)
}

func sameRecord(a, b store.Record) bool { return a.Head == b.Head && bytes.Equal(a.Data, b.Data) }

// DurableAfter implements store.Archiver: what is acknowledged is durable at once.
func (a *Archive) DurableAfter() time.Duration { return 0 }

// ReadArchive implements store.ArchiveReader. It yields events.ErrDamaged where an entry is missing.
func (a *Archive) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	all := a.Records(shard)
	return func(yield func(store.Record, error) bool) {
		if len(all) > 0 && max(from, 1) < all[0].Number {
			yield(store.Record{}, store.ErrTrimmed)
			return
		}
		for i, r := range all {
			err := ctx.Err()
			if err == nil && i > 0 && r.Number > from {
				err = follows(shard, all[i-1], r)
			}
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			if r.Number >= from && !yield(r, nil) {
				return
			}
		}
	}
}

// follows wraps events.ErrDamaged where an entry is not the next one.
func follows(shard int, before, r store.Record) error {
	if r.Number == before.Number+1 {
		return nil
	}
	return fmt.Errorf("%w: the archive of shard %d has entry %d after entry %d",
		events.ErrDamaged, shard, r.Number, before.Number)
}

// FindArchived implements store.ArchiveReader. It ends with events.ErrDamaged where an entry is missing.
func (a *Archive) FindArchived(
	ctx context.Context,
	shard int,
	task events.TaskID,
	last uint64,
) iter.Seq2[store.Record, error] {
	all := a.counting(shard)
	return func(yield func(store.Record, error) bool) {
		for _, s := range slices.Backward(all) {
			if s.tasks != nil && !s.tasks[task] {
				continue
			}
			for _, r := range slices.Backward(s.Entries) {
				if r.Number > last {
					continue
				}
				if err := ctx.Err(); err != nil {
					yield(store.Record{}, err)
					return
				}
				if !yield(r, nil) {
					return
				}
			}
		}
		records := a.Records(shard)
		for i := 1; i < len(records) && records[i-1].Number < last; i++ {
			if err := follows(shard, records[i-1], records[i]); err != nil {
				yield(store.Record{}, err)
				return
			}
		}
	}
}
