package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"taskledger/filestore/journal"
	"taskledger/store"
)

// numberBlock counts the numbers of entries that are reserved at a time where the journaler may lose some that were
// answered.
const numberBlock = 1024

// Append is the commit. See store.Journal.
func (s *Store) Append(ctx context.Context, o store.Ownership, after store.Head, entry []byte) (int64, error) {
	var revision int64
	err := s.inTurn(ctx, o, func(at *shard) (err error) {
		revision, err = s.append(o, at, after, entry)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("append entry %d of shard %d: %w", after.Number+1, o.Shard, err)
	}
	return revision, nil
}

// inTurn makes a write of a shard in its turn, which it gives to others while there is no room for it.
func (s *Store) inTurn(ctx context.Context, o store.Ownership, write func(at *shard) error) error {
	if err := s.checkOwnership(o); err != nil {
		return err
	}
	return s.write(ctx, func() error {
		if err := s.reserve(); err != nil {
			return err
		}
		at := s.shards[o.Shard]
		at.turn.Lock()
		defer at.turn.Unlock()
		return write(at)
	})
}

// append writes an entry in the turn of its shard.
func (s *Store) append(o store.Ownership, at *shard, after store.Head, entry []byte) (int64, error) {
	if (after.Number == 0) != (after.Revision == 0) {
		return 0, fmt.Errorf("%w: entry %d cannot have revision %d", store.ErrRefused, after.Number, after.Revision)
	}
	if err := checkValue(entry); err != nil {
		return 0, err
	}
	if len(entry) == 0 {
		return 0, fmt.Errorf("%w: the entry is empty", store.ErrRefused)
	}
	s.lock()
	follows := after == at.last && (after.Number > 0 || s.notes.of(o.Shard).Pointer.Revision == 0)
	fenced := s.fenced(o)
	s.mu.Unlock()
	if fenced != nil || !follows {
		return s.verdict(o, at, after, entry, fenced)
	}
	return s.put(o.Shard, at, after.Number+1, entry)
}

// put writes the next entry of a shard in its turn.
func (s *Store) put(shard int, at *shard, number uint64, entry []byte) (int64, error) {
	if err := s.reserveNumber(shard, number); err != nil {
		return 0, err
	}
	s.lock()
	revision := s.next()
	s.mu.Unlock()
	err := s.journal.Append(journal.Entry{
		Shard:    shard,
		Number:   number,
		Revision: revision,
		Data:     entry,
	})
	if err != nil {
		return 0, ofJournaler(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at.holds(store.Head{Number: number, Revision: revision}, len(entry))
	s.tell(topic{of: ofJournal, shard: shard})
	return revision, nil
}

// holds notes another entry.
func (at *shard) holds(head store.Head, size int) {
	at.last = head
	at.sizes = append(at.sizes, uint32(size))
	at.bytes += int64(size)
}

// reserveNumber makes sure that no other entry ever gets a number that is about to be answered, even if this one is
// lost.
func (s *Store) reserveNumber(shard int, number uint64) error {
	if s.lossy == nil {
		return nil
	}
	s.mu.Lock()
	reserved := s.notes.of(shard).Numbers
	s.mu.Unlock()
	if number <= reserved {
		return nil
	}
	return s.noteOf(shard, func(n *shardNotes) { n.Numbers = number + numberBlock - 1 })
}

// verdict says what became of an append that is not the next one of an owner. It may have been made before.
func (s *Store) verdict(o store.Ownership, at *shard, after store.Head, entry []byte, fenced error) (int64, error) {
	there, err := s.entry(o.Shard, after.Number+1)
	switch {
	case err == nil && bytes.Equal(there.Data, entry): // it names its owner and epoch: nobody else writes the same
		return there.Revision, nil
	case err == nil && fenced != nil:
		return 0, fmt.Errorf("%w: the entry was written by another", fenced)
	case err == nil:
		return 0, fmt.Errorf("%w: entry %d is another one", store.ErrAlien, after.Number+1)
	case !errors.Is(err, store.ErrTrimmed):
		return 0, err
	}
	s.mu.Lock()
	kept := s.notes.of(o.Shard).Pointer.Kept
	s.mu.Unlock()
	if len(kept) > 0 && kept[len(kept)-1].Entry > after.Number { // entries before it may have been trimmed
		return 0, fmt.Errorf("%w: snapshots cover entry %d", store.ErrMoved, kept[len(kept)-1].Entry)
	}
	if fenced != nil {
		return 0, fenced
	}
	return 0, fmt.Errorf("%w: entry %d is not the one of revision %d", store.ErrRefused, after.Number, after.Revision)
}
