// Package filearchive keeps an archive in the files of a directory: one file a shard, to which segments are appended.
// It implements store.Archive for one process. What it acknowledges is synced.
//
// A file archive-<shard> is a sequence of records as package filejournal describes them. The first one has the shard
// -2, the number of the shard as its number, and names the format and the cluster in its data. Each further one is
// a segment, whose number is its sequence in the shard, from 1 on. The data of a segment are, all numbers
// little-endian:
//
//	8 bytes each: the entry, the sequence and the beginning of the head before it, and its own beginning
//	4 bytes: the length of the filter, and that many bytes of it
//	for each entry 8 bytes number, 8 bytes revision, 4 bytes length, and its bytes
//
// The filter is a Bloom filter of the tasks in the segment, with 10 bits a task and 7 probes, 6 KiB at most.
//
// A crash can cut short the end of a file, and leave one whose name ends with .new: that is removed when the archive is
// opened. Anything else that is corrupt is damage, and refused by file and offset, and then nothing is changed.
// Look finds that out, and Begin changes what is to be changed.
//
// An archive is read once when it is opened, a segment at a time. It keeps the filters in memory, which are 10 bits a
// task, and some 130 bytes of each segment. Few files are open at a time, to be read or to be written.
package filearchive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/events"
	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
	"taskledger/store"
)

// Archive is an archive of any number of shards. Its methods may be called concurrently. The caller closes it.
type Archive struct {
	layer    disk.Layer
	rewriter disk.Rewriter // of the layer
	reading  *disk.Reading[*file]
	writing  chan struct{} // holds as many as have a file open to write to it
	closed   atomic.Bool   // nothing is written any more
	cluster  string
	unlock   func() error

	mu        sync.Mutex
	shards    map[int]*file
	makeReady func() error // for archiving; nil = that was done
}

var _ store.Archive = (*Archive)(nil)

var (
	// ErrInUse reports that a directory is in use, by another process or by this one.
	ErrInUse = disk.ErrInUse
	// ErrOtherCluster reports an archive of another cluster than was expected.
	ErrOtherCluster = errors.New("archive is of another cluster")
)

// Open opens the archive in a directory, which it makes where it is missing. cluster is the id of the cluster that
// archives there, and no other one may. It wraps ErrInUse, ErrOtherCluster, or events.ErrDamaged; then nothing was
// changed.
func Open(dir, cluster string) (*Archive, error) {
	a, err := Look(dir, cluster)
	if err != nil {
		return nil, err
	}
	if err := a.Begin(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Look is Open that leaves the directory as it is until Begin, and makes none: what is there can be read, and nothing
// archived. So whoever refuses what is there, or what is beside it, has changed nothing. The caller closes the archive
// also where it does not begin.
func Look(dir, cluster string) (*Archive, error) {
	unlock, err := disk.LockThere(dir)
	unlocked := errors.Is(err, fs.ErrNotExist) // so it is as long as nobody has archived there
	if unlocked {
		unlock, err = func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	a, err := look(disk.Dir(dir), cluster)
	if a, err = locked(a, dir, unlock, err); err != nil {
		return nil, err
	}
	a.makeReady = func() error {
		if err := a.occupy(dir, unlocked); err != nil {
			return fmt.Errorf("open archive in %s: %w", dir, err)
		}
		return nil
	}
	return a, nil
}

// occupy makes the directory, takes its lock where that is not taken, and makes it ready. What is there is read anew
// then, since others may have been there meanwhile. The caller holds mu.
func (a *Archive) occupy(dir string, unlocked bool) error {
	if err := disk.MakeDir(dir); err != nil {
		return err
	}
	if unlocked {
		unlock, err := disk.Lock(dir)
		if err != nil {
			return err
		}
		a.unlock = unlock
		a.closeFiles()
		if err := a.load(); err != nil {
			return err
		}
	}
	return a.settle()
}

// OpenToRead opens the archive in a directory without changing anything there. Any number of readers share it; to
// archive fails. It wraps ErrInUse while somebody may archive there, fs.ErrNotExist where nobody ever has, and what
// else Open wraps. An archive without its file lock, as a copy may be that leaves out empty files, is read all the
// same: whoever reads it has the lock of the store beside it, without which nobody archives.
func OpenToRead(dir, cluster string) (*Archive, error) {
	unlock, err := disk.LockToRead(dir, isFile)
	if errors.Is(err, disk.ErrNoLock) {
		unlock, err = func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open archive in %s: %w", dir, err)
	}
	a, err := look(disk.ReadOnly(dir), cluster)
	return locked(a, dir, unlock, err)
}

// locked returns an archive that ends the lock of its directory when it is closed, or at once where it was not opened.
func locked(a *Archive, dir string, unlock func() error, err error) (*Archive, error) {
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open archive in %s: %w", dir, err), unlock())
	}
	a.unlock = unlock
	return a, nil
}

// look is Look on a file layer, which nobody else uses.
func look(l disk.Rewritable, cluster string) (*Archive, error) {
	a := &Archive{
		layer:     l,
		rewriter:  l,
		reading:   disk.NewReading[*file](l, maxReading),
		writing:   make(chan struct{}, maxWriting),
		cluster:   cluster,
		unlock:    func() error { return nil },
		shards:    map[int]*file{},
		makeReady: func() error { return disk.ErrReadOnly },
	}
	if err := a.load(); err != nil {
		a.closeFiles()
		return nil, err
	}
	return a, nil
}

// load reads all files, and passes over what a crash has left.
func (a *Archive) load() error {
	names, err := a.layer.List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		shard, is := shardOf(name)
		if !is {
			continue
		}
		f, err := a.openFile(shard)
		if err != nil {
			return err
		}
		a.shards[shard] = f
	}
	return nil
}

// Begin makes the directory ready for archiving, once: it removes what a crash has left, and makes durable what is
// there. After an error nothing can be archived.
func (a *Archive) Begin() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.makeReady == nil {
		return disk.ErrReadOnly
	}
	if err := a.makeReady(); err != nil {
		return err
	}
	a.makeReady = nil
	return nil
}

// settle removes what a crash has left, and makes durable what is there.
func (a *Archive) settle() error {
	for _, f := range a.shards {
		if err := f.settle(); err != nil {
			return err
		}
	}
	if err := disk.RemoveUnfinished(a.layer); err != nil {
		return err
	}
	return a.layer.SyncDir()
}

const (
	filePrefix = "archive-"

	// maxReading and maxWriting bound the files that are open to be read, and to be written.
	maxReading = 16
	maxWriting = 16
)

func fileName(shard int) string { return filePrefix + strconv.Itoa(shard) }

func shardOf(name string) (int, bool) {
	digits, is := strings.CutPrefix(name, filePrefix)
	n, err := strconv.Atoi(digits)
	return n, is && err == nil && fileName(n) == name
}

// isFile reports whether a name is that of the file of a shard.
func isFile(name string) bool {
	_, is := shardOf(name)
	return is
}

// of returns the file of a shard, nil where nothing is archived.
func (a *Archive) of(shard int) *file {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shards[shard]
}

// Head implements store.Archiver.
func (a *Archive) Head(_ context.Context, shard int) (store.ArchiveHead, error) {
	segments := a.of(shard).all()
	if len(segments) == 0 {
		return store.ArchiveHead{}, nil
	}
	return segments[len(segments)-1].head, nil
}

// Archive implements store.Archiver.
func (a *Archive) Archive(
	ctx context.Context, shard int, after store.ArchiveHead, entries []store.Record,
) (store.ArchiveHead, error) {
	head, err := a.archive(ctx, shard, after, entries)
	if err != nil {
		return after, fmt.Errorf("archive entries of shard %d after %d: %w", shard, after.Entry, err)
	}
	return head, nil
}

func (a *Archive) archive(
	ctx context.Context, shard int, after store.ArchiveHead, entries []store.Record,
) (store.ArchiveHead, error) {
	if err := errors.Join(ctx.Err(), store.CheckSegment(entries)); err != nil {
		return after, err
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
	f, err := a.toWrite(shard)
	if err != nil {
		return after, err
	}
	return f.append(after, head, entries, newFilter(tasks))
}

// toWrite returns the file of a shard, and makes it where it is missing.
func (a *Archive) toWrite(shard int) (*file, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.makeReady != nil {
		return nil, disk.ErrReadOnly
	}
	f := a.shards[shard]
	if f != nil {
		return f, nil
	}
	f, err := a.createFile(shard)
	if err == nil {
		a.shards[shard] = f
	}
	return f, err
}

// tasksIn returns the tasks that entries hold events of. It fails where one is no entry of the shard.
func tasksIn(shard int, entries []store.Record) (map[events.TaskID]struct{}, error) {
	tasks := map[events.TaskID]struct{}{}
	for _, r := range entries {
		e, err := events.Decode(r.Data)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", r.Number, err)
		}
		if int(e.Shard) != shard || e.Number != r.Number {
			return nil, fmt.Errorf("entry %d of shard %d as entry %d: %w", e.Number, e.Shard, r.Number, events.ErrDamaged)
		}
		for i := range e.Events {
			tasks[e.Events[i].Task] = struct{}{}
		}
	}
	return tasks, nil
}

// Confirm implements store.Archiver. It reads the segment from the file.
func (a *Archive) Confirm(_ context.Context, shard int, head store.ArchiveHead, entries []store.Record) error {
	differs := fmt.Errorf("archive of shard %d differs up to entry %d: %w", shard, head.Entry, store.ErrConflict)
	f := a.of(shard)
	all := f.all()
	at := head.Sequence - 1 // of none it is the largest number
	if at >= uint64(len(all)) || all[at].head != head {
		return differs
	}
	there, err := f.read(all[at])
	if err != nil {
		return fmt.Errorf("read what was archived of shard %d: %w", shard, err)
	}
	if len(entries) == 0 || !slices.EqualFunc(there, entries, sameRecord) {
		return differs
	}
	return nil
}

func sameRecord(a, b store.Record) bool { return a.Head == b.Head && bytes.Equal(a.Data, b.Data) }

// DurableAfter implements store.Archiver: what is acknowledged is durable at once.
func (a *Archive) DurableAfter() time.Duration { return 0 }

// ReadArchive implements store.ArchiveReader.
func (a *Archive) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	f := a.of(shard)
	all := f.all()
	return func(yield func(store.Record, error) bool) {
		if len(all) > 0 && max(from, 1) < all[0].first {
			yield(store.Record{}, store.ErrTrimmed)
			return
		}
		var before uint64 // the last entry that counts in the segments before
		for _, s := range all {
			if s.last() < s.first {
				continue
			}
			if before != 0 && s.first != before+1 && s.first > from {
				yield(store.Record{}, missing(shard, before, s.first))
				return
			}
			before = s.last()
			if before < from {
				continue
			}
			records, err := f.read(s)
			if err != nil {
				yield(store.Record{}, fmt.Errorf("read the archive of shard %d: %w", shard, err))
				return
			}
			for _, r := range records {
				if err := ctx.Err(); err != nil {
					yield(store.Record{}, err)
					return
				}
				if r.Number >= from && r.Number <= before && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// missing reports entries that are not there.
func missing(shard int, before, next uint64) error {
	return fmt.Errorf("%w: the archive of shard %d has entry %d after entry %d", events.ErrDamaged, shard, next, before)
}

// FindArchived implements store.ArchiveReader.
func (a *Archive) FindArchived(
	ctx context.Context, shard int, task events.TaskID, last uint64,
) iter.Seq2[store.Record, error] {
	f := a.of(shard)
	all := f.all()
	return func(yield func(store.Record, error) bool) {
		for _, s := range slices.Backward(all) {
			if s.last() < s.first || s.first > last || !s.tasks.mayHold(task) {
				continue
			}
			records, err := f.read(s)
			if err != nil {
				yield(store.Record{}, fmt.Errorf("read the archive of shard %d: %w", shard, err))
				return
			}
			for _, r := range slices.Backward(records) {
				if r.Number > min(last, s.last()) {
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
		if err := gap(shard, all, last); err != nil {
			yield(store.Record{}, err)
		}
	}
}

// gap returns an error where an entry before last is missing among segments.
func gap(shard int, all []segment, last uint64) error {
	var before uint64
	for _, s := range all {
		if s.last() < s.first {
			continue
		}
		if before != 0 && before < last && s.first != before+1 {
			return missing(shard, before, s.first)
		}
		before = s.last()
	}
	return nil
}

// Close ends the use of the directory.
func (a *Archive) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.makeReady = func() error { return disk.ErrReadOnly } // what is there must not be taken for missing
	a.reading.Close()
	a.closeFiles()
	a.endWrites()
	if err := a.unlock(); err != nil {
		return fmt.Errorf("close archive: %w", err)
	}
	return nil
}

// endWrites waits for the writes under way, and lets no other one begin.
func (a *Archive) endWrites() {
	a.closed.Store(true)
	for range maxWriting {
		a.writing <- struct{}{}
	}
	for range maxWriting {
		<-a.writing
	}
}

// closeFiles closes all files, and forgets what is in them. The caller holds mu.
func (a *Archive) closeFiles() {
	a.reading.ForgetAll()
	clear(a.shards)
}

const (
	// openingShard is the shard of the first record of a file.
	openingShard = -2
	// format begins the data of the first record; the id of the cluster follows.
	format = "taskledger archive 1 of "
)

// opening returns the first record of a file, whose data tell people and programs what it is.
func opening(shard int, cluster string) frame.Frame {
	return frame.Frame{
		Shard:  openingShard,
		Number: uint64(shard),
		Data:   []byte(format + cluster + "\n"),
	}
}
