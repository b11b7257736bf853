package filejournal

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"taskledger/filestore/internal/disk"
	"taskledger/filestore/journal"
)

// WriteSnapshot implements journal.Journaler. Segments that nobody needs any more are removed, and what is left of
// those that are mostly not needed is written anew.
func (j *Journal) WriteSnapshot(k journal.Key, s journal.Snapshot) error {
	if err := j.writeSnapshot(k, s); err != nil {
		return fmt.Errorf("write %s: %w", snapshotName(k), err)
	}
	return nil
}

func (j *Journal) writeSnapshot(k journal.Key, s journal.Snapshot) error {
	file, err := encodeSnapshot(k, s)
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrFull, err)
	}
	j.snapshots.RLock()
	defer j.snapshots.RUnlock()
	if err := j.replace(k, s.First, file); err != nil || k.Shard == journal.Notes {
		return err
	}
	if err := j.compact(); !disk.Full(err) {
		return j.spoilt(err)
	}
	return nil // the snapshot is written; room is made with the next one
}

// replace writes the file of a snapshot, while those of others are written, and once all entries are durable that were
// appended before.
func (j *Journal) replace(k journal.Key, first uint64, file []byte) error {
	unlock := j.keys.lock(k)
	defer unlock()
	if err := j.syncNow(); err != nil {
		return err
	}
	if err := disk.Replace(j.layer, snapshotName(k), file); err != nil {
		return j.spoilt(err)
	}
	j.index.Lock()
	defer j.index.Unlock()
	j.line(k.Shard).drop(first)
	return nil
}

// keyLocks holds a lock for each key that was ever written. The zero value is ready.
type keyLocks struct {
	mu  sync.Mutex
	all map[journal.Key]*sync.Mutex
}

// lock takes the lock of a key.
func (l *keyLocks) lock(k journal.Key) (unlock func()) {
	l.mu.Lock()
	of := l.all[k]
	if of == nil {
		of = new(sync.Mutex)
		if l.all == nil {
			l.all = map[journal.Key]*sync.Mutex{}
		}
		l.all[k] = of
	}
	l.mu.Unlock()
	of.Lock()
	return of.Unlock
}

// spoilt returns the error of a write to other files than the last segment, after which nothing is written any more
// unless there was no room for it.
func (j *Journal) spoilt(err error) error {
	if err == nil {
		return nil
	}
	if disk.Full(err) {
		return fmt.Errorf("%w: %w", journal.ErrFull, err)
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.fail(err)
}

// ReadSnapshot implements journal.Journaler.
func (j *Journal) ReadSnapshot(k journal.Key) (journal.Snapshot, error) {
	file, err := disk.ReadAll(j.layer, snapshotName(k))
	if errors.Is(err, fs.ErrNotExist) {
		return journal.Snapshot{}, nil
	}
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("read snapshot: %w", err)
	}
	return decodeSnapshot(k, file)
}
