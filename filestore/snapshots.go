package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"taskledger/filestore/journal"
	"taskledger/store"
)

// PutPart is described in store.Snapshots. Parts are in memory until Publish writes them, all at once, or until those
// of another snapshot are put, also by a later owner of the shard.
func (s *Store) PutPart(ctx context.Context, o store.Ownership, entry uint64, part int, data []byte) error {
	err := s.inTurn(ctx, o, func(at *shard) error { return s.putPart(o, at, partKey{entry, o.Revision, part}, data) })
	if err != nil {
		return fmt.Errorf("put part %d of snapshot %d of shard %d: %w", part, entry, o.Shard, err)
	}
	return nil
}

func (s *Store) putPart(o store.Ownership, at *shard, k partKey, data []byte) error {
	if k.entry == 0 || k.part < 0 || k.part > math.MaxInt32 {
		return fmt.Errorf("%w: no such part", store.ErrRefused)
	}
	if err := checkValue(data); err != nil {
		return err
	}
	s.lock()
	fenced := s.fenced(o)
	s.mu.Unlock()
	there, known := at.parts[k]
	if !known {
		there, known = s.published(o.Shard, k)
	}
	switch {
	case known && bytes.Equal(there, data):
		return nil // it was put before
	case fenced != nil:
		return fenced
	case known:
		return fmt.Errorf("%w: it was written with other bytes", store.ErrRefused)
	}
	at.only(k)
	if at.put+int64(len(data)) > maxPartsBytes {
		return fmt.Errorf("%w: %w: the parts that are not published exceed the limit of %d bytes",
			store.ErrRefused, store.ErrTooLarge, maxPartsBytes)
	}
	at.put += int64(len(data))
	at.parts[k] = bytes.Clone(data)
	return nil
}

// drop forgets the parts that are not published.
func (at *shard) drop() {
	clear(at.parts)
	at.put = 0
}

// only forgets the parts of another snapshot than that of a part: it was given up. Those of one are there at a time.
func (at *shard) only(k partKey) {
	for other := range at.parts {
		if other.entry != k.entry || other.epoch != k.epoch {
			at.drop()
		}
		return
	}
}

// published returns a part of a snapshot that is kept.
func (s *Store) published(shard int, k partKey) ([]byte, bool) {
	s.mu.Lock()
	p := s.notes.of(shard).Pointer
	s.mu.Unlock()
	for i, kept := range p.Kept {
		if kept.Entry != k.entry || kept.Epoch != k.epoch {
			continue
		}
		stored, err := s.journal.ReadSnapshot(journal.Key{Shard: shard, Slot: p.Slots[i]})
		if err == nil && k.part < len(stored.Parts) {
			return stored.Parts[k.part], true
		}
	}
	return nil, false
}

// Publish is described in store.Snapshots.
func (s *Store) Publish(
	ctx context.Context, o store.Ownership, seen store.SnapshotPointer, snapshot store.SnapshotInfo,
) (store.SnapshotPointer, error) {
	kept := append([]store.SnapshotInfo{snapshot}, seen.Kept[:min(len(seen.Kept), 1)]...)
	var revision int64
	err := s.checkOwnership(o)
	if err == nil {
		err = s.write(ctx, func() (err error) {
			revision, err = s.publish(o, seen.Revision, kept)
			return err
		})
	}
	if err != nil {
		return store.SnapshotPointer{}, fmt.Errorf("publish snapshot %d of shard %d: %w", snapshot.Entry, o.Shard, err)
	}
	return store.SnapshotPointer{Revision: revision, Kept: kept}, nil
}

// checkKept refuses what no pointer names.
func checkKept(kept []store.SnapshotInfo) error {
	for i, k := range kept {
		switch {
		case k.Entry == 0, k.Parts < 1, k.Bytes < 0:
			return fmt.Errorf("%w: no snapshot", store.ErrRefused)
		case i > 0 && k.Entry >= kept[i-1].Entry:
			return fmt.Errorf("%w: snapshot %d is not newer than %d", store.ErrRefused, kept[i-1].Entry, k.Entry)
		}
	}
	return nil
}

// publish writes a snapshot where no other one that is kept lies, outside of the turn of the shard, and then has the
// pointer name it.
func (s *Store) publish(o store.Ownership, seen int64, kept []store.SnapshotInfo) (int64, error) {
	if err := checkKept(kept); err != nil {
		return 0, err
	}
	if kept[0].Epoch != o.Revision {
		return 0, fmt.Errorf("%w: taken in epoch %d, this is %d", store.ErrRefused, kept[0].Epoch, o.Revision)
	}
	if err := s.reserve(); err != nil {
		return 0, err
	}
	at := s.shards[o.Shard]
	at.publishing.Lock()
	defer at.publishing.Unlock()
	p, err := s.toPublish(o, at, seen, kept)
	if err != nil {
		return 0, err
	}
	if p.before.Revision != seen { // it was published before
		return p.before.Revision, nil
	}
	if err := s.journal.WriteSnapshot(journal.Key{Shard: o.Shard, Slot: p.next.Slots[0]}, p.state); err != nil {
		return 0, ofJournaler(err)
	}
	at.told = p.state.First
	return s.pointTo(o, at, &p)
}

// publication is a snapshot that is being published.
type publication struct {
	state  journal.Snapshot
	before pointer // of the shard, when it was begun
	next   pointer // to the snapshot; it has no revision yet
}

// toPublish returns what is to be done, nothing of which was done.
func (s *Store) toPublish(
	o store.Ownership, at *shard, seen int64, kept []store.SnapshotInfo,
) (p publication, err error) {
	at.turn.Lock()
	defer at.turn.Unlock()
	now, err := s.pointed(o, seen, kept)
	p.before, p.state.First = now.Pointer, now.held()
	if err != nil || p.before.Revision != seen {
		return p, err
	}
	if p.state.Parts, err = at.complete(kept[0]); err != nil {
		return p, err
	}
	p.next.Kept = kept
	p.next.Slots, err = now.Pointer.slotsFor(kept)
	return p, err
}

// pointTo makes the next pointer that of the shard, unless it has changed since, and returns its revision.
func (s *Store) pointTo(o store.Ownership, at *shard, p *publication) (int64, error) {
	at.turn.Lock()
	defer at.turn.Unlock()
	now, err := s.pointed(o, p.before.Revision, p.next.Kept)
	if err == nil && !slices.Equal(now.Pointer.Kept, p.before.Kept) {
		err = fmt.Errorf("%w: some of the snapshots were left", store.ErrFenced)
	}
	if err != nil {
		return 0, err
	}
	s.lock()
	p.next.Revision = s.next()
	s.mu.Unlock()
	if err := s.noteOf(o.Shard, func(n *shardNotes) { n.Pointer = p.next }); err != nil {
		return 0, err
	}
	at.drop()
	return p.next.Revision, nil
}

// pointed returns the notes of a shard whose pointer is the one that was seen, or keeps already what is to be kept. The
// caller has the turn of the shard.
func (s *Store) pointed(o store.Ownership, seen int64, kept []store.SnapshotInfo) (shardNotes, error) {
	s.lock()
	defer s.mu.Unlock()
	now, fenced := s.notes.of(o.Shard), s.fenced(o)
	switch {
	case now.Pointer.Revision > seen && slices.Equal(now.Pointer.Kept, kept):
		return now, nil // it was published before
	case fenced != nil:
		return now, fenced
	case now.Pointer.Revision != seen:
		return now, fmt.Errorf("%w: the pointer has changed", store.ErrFenced)
	}
	return now, nil
}

// complete returns the parts of a snapshot that is to be published.
func (at *shard) complete(s store.SnapshotInfo) (parts [][]byte, err error) {
	for n := range s.Parts {
		part, there := at.parts[partKey{s.Entry, s.Epoch, n}]
		if !there {
			return nil, fmt.Errorf("%w: its parts are gone", store.ErrRefused)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// slotsFor returns where the snapshots that are to be kept lie: the first one in a slot that is free.
func (p *pointer) slotsFor(kept []store.SnapshotInfo) ([]int, error) {
	slots := make([]int, len(kept))
	for i, k := range kept[1:] {
		at := slices.Index(p.Kept, k)
		if at < 0 {
			return nil, fmt.Errorf("%w: snapshot %d is not kept", store.ErrRefused, k.Entry)
		}
		slots[i+1] = p.Slots[at]
	}
	for slices.Contains(p.Slots, slots[0]) {
		slots[0]++
	}
	return slots, nil
}

// Pointer is described in store.Snapshots.
func (s *Store) Pointer(ctx context.Context, shard int) (store.SnapshotPointer, error) {
	err := ctx.Err()
	if err == nil {
		err = s.checkShard(shard)
	}
	if err != nil {
		return store.SnapshotPointer{}, fmt.Errorf("read snapshot pointer of shard %d: %w", shard, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.notes.of(shard).Pointer
	return store.SnapshotPointer{Revision: p.Revision, Kept: slices.Clone(p.Kept)}, nil
}

// Parts is described in store.Snapshots.
func (s *Store) Parts(ctx context.Context, shard int, snapshot store.SnapshotInfo) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		parts, err := s.partsOf(shard, snapshot)
		for n := range snapshot.Parts {
			switch {
			case err != nil:
			case ctx.Err() != nil:
				err = ctx.Err()
			case n >= len(parts):
				err = store.ErrTrimmed
			}
			if err != nil {
				yield(nil, fmt.Errorf("read part %d of snapshot %d of shard %d: %w", n, snapshot.Entry, shard, err))
				return
			}
			if !yield(parts[n], nil) {
				return
			}
		}
	}
}

// partsOf returns the parts of a snapshot, up to the first one that is missing.
func (s *Store) partsOf(shard int, snapshot store.SnapshotInfo) (parts [][]byte, err error) {
	if err := s.checkShard(shard); err != nil {
		return nil, err
	}
	at := s.shards[shard]
	at.turn.Lock()
	defer at.turn.Unlock()
	s.mu.Lock()
	p := s.notes.of(shard).Pointer
	s.mu.Unlock()
	for i, k := range p.Kept {
		if k.Entry == snapshot.Entry && k.Epoch == snapshot.Epoch {
			stored, err := s.journal.ReadSnapshot(journal.Key{Shard: shard, Slot: p.Slots[i]})
			return stored.Parts, err
		}
	}
	for n := 0; ; n++ {
		part, there := at.parts[partKey{snapshot.Entry, snapshot.Epoch, n}]
		if !there {
			return parts, nil
		}
		parts = append(parts, bytes.Clone(part))
	}
}

// First is described in store.Trimmer.
func (s *Store) First(ctx context.Context, shard int) (uint64, error) {
	err := ctx.Err()
	if err == nil {
		err = s.checkShard(shard)
	}
	if err != nil {
		return 0, fmt.Errorf("find the first entry of shard %d: %w", shard, err)
	}
	first, last := s.held(shard)
	if first > last.Number {
		return 0, nil
	}
	return first, nil
}

// Trim is described in store.Trimmer. The entries are gone at once, and leave the journaler afterwards.
func (s *Store) Trim(ctx context.Context, o store.Ownership, p store.SnapshotPointer, first, until uint64) error {
	err := s.inTurn(ctx, o, func(at *shard) error { return s.trim(o, at, p, first, until) })
	if err == nil {
		err = s.makeRoom(o.Shard)
	}
	if err != nil {
		return fmt.Errorf("trim shard %d from entry %d to %d: %w", o.Shard, first, until, err)
	}
	return nil
}

var errNotCovered = errors.New("no two snapshots cover it")

func (s *Store) trim(o store.Ownership, at *shard, p store.SnapshotPointer, first, until uint64) error {
	if p.Revision <= 0 || len(p.Kept) != 2 || first == 0 || until > p.Kept[1].Entry {
		return fmt.Errorf("%w: %w", store.ErrRefused, errNotCovered)
	}
	if first >= until {
		return nil
	}
	s.lock()
	now, fenced := s.notes.of(o.Shard), s.fenced(o)
	s.mu.Unlock()
	switch {
	case fenced != nil:
		return fenced
	case now.Pointer.Revision != p.Revision:
		return fmt.Errorf("%w: the snapshot pointer has changed", store.ErrFenced)
	case first > now.held():
		return fmt.Errorf("%w: entry %d is still there", store.ErrRefused, first-1)
	case until <= now.held():
		return nil
	}
	if err := s.noteOf(o.Shard, func(n *shardNotes) { n.First = until }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := min(until-now.held(), uint64(len(at.sizes)))
	for _, size := range at.sizes[:gone] {
		at.bytes -= int64(size)
	}
	at.sizes = slices.Clone(at.sizes[gone:])
	return nil
}

// makeRoom tells the journaler which entries of a shard were trimmed, by a snapshot of nothing where no other one that
// is kept lies: the next snapshot, which would tell it too, may never come. Where there is no room for that, it is
// left to the next one all the same.
func (s *Store) makeRoom(number int) error {
	at := s.shards[number]
	at.publishing.Lock()
	defer at.publishing.Unlock()
	s.mu.Lock()
	now := s.notes.of(number)
	s.mu.Unlock()
	if now.First <= at.told {
		return nil
	}
	free, err := now.Pointer.slotsFor([]store.SnapshotInfo{{}})
	if err != nil {
		return err
	}
	k := journal.Key{Shard: number, Slot: free[0]}
	err = s.writeOnce(func() error {
		return ofJournaler(s.journal.WriteSnapshot(k, journal.Snapshot{First: now.held()}))
	})
	if errors.Is(err, journal.ErrFull) {
		return nil
	}
	if err == nil {
		at.told = now.held()
	}
	return err
}
