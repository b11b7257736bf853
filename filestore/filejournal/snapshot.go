package filejournal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
	"taskledger/filestore/journal"
)

const snapshotPrefix = "snapshot-"

func snapshotName(k journal.Key) string {
	if k.Shard == journal.Notes {
		return fmt.Sprintf("%snotes-%d", snapshotPrefix, k.Slot)
	}
	return fmt.Sprintf("%s%d-%d", snapshotPrefix, k.Shard, k.Slot)
}

func isSnapshot(name string) bool {
	_, is := snapshotKey(name)
	return is
}

// snapshotKey returns the key of the snapshot in a file.
func snapshotKey(name string) (k journal.Key, is bool) {
	rest, is := strings.CutPrefix(name, snapshotPrefix)
	if !is {
		return k, false
	}
	if _, err := fmt.Sscanf(rest, "notes-%d", &k.Slot); err == nil {
		k.Shard = journal.Notes
		return k, snapshotName(k) == name
	}
	_, err := fmt.Sscanf(rest, "%d-%d", &k.Shard, &k.Slot)
	return k, err == nil && snapshotName(k) == name
}

// encodeSnapshot returns the records of a snapshot. The first one has First as its number, and the number of parts as
// its data; the others have the number of their part, from 1 on, and a byte before it, since a part may be empty.
func encodeSnapshot(k journal.Key, s journal.Snapshot) ([]byte, error) {
	count := binary.LittleEndian.AppendUint32(nil, uint32(len(s.Parts)))
	file, err := frame.Append(nil, 0, frame.Frame{Shard: k.Shard, Number: s.First, Revision: int64(k.Slot), Data: count})
	for i, part := range s.Parts {
		if err != nil {
			return nil, err
		}
		file, err = frame.Append(file, 0, frame.Frame{Shard: k.Shard, Number: uint64(i) + 1, Data: append([]byte{'.'}, part...)})
	}
	return file, err
}

// decodeSnapshot reads what encodeSnapshot returned.
func decodeSnapshot(k journal.Key, file []byte) (s journal.Snapshot, err error) {
	name := snapshotName(k)
	damaged := func(at int64, problem string) (journal.Snapshot, error) {
		return journal.Snapshot{}, &DamagedError{name, at, problem}
	}
	head, at, err := frame.Read(file, 0)
	switch {
	case err != nil:
		return damaged(0, err.Error())
	case head.Shard != k.Shard || head.Revision != int64(k.Slot) || len(head.Data) != 4:
		return damaged(0, "it begins as another snapshot")
	}
	s.First = head.Number
	parts := binary.LittleEndian.Uint32(head.Data)
	for n := uint32(1); n <= parts; n++ {
		part, next, err := frame.Read(file, at)
		switch {
		case err != nil:
			return damaged(at, err.Error())
		case part.Shard != k.Shard || part.Number != uint64(n):
			return damaged(at, fmt.Sprintf("it holds part %d of shard %d instead of part %d", part.Number, part.Shard, n))
		}
		s.Parts = append(s.Parts, part.Data[1:])
		at = next
	}
	if at != int64(len(file)) {
		return damaged(at, "the last part ends before the file")
	}
	return s, nil
}

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
	j.snapshots.Lock()
	defer j.snapshots.Unlock()
	if err := j.syncNow(); err != nil {
		return err
	}
	if err := disk.Replace(j.layer, snapshotName(k), file); err != nil {
		return j.spoilt(err)
	}
	j.index.Lock()
	j.line(k.Shard).drop(s.First)
	j.index.Unlock()
	return j.spoilt(j.compact())
}

// syncNow syncs all that was written.
func (j *Journal) syncNow() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.ready(); err != nil {
		return err
	}
	return j.sync()
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
