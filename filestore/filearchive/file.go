package filearchive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"

	"taskledger/events"
	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
	"taskledger/store"
)

// segment is where a segment lies, and what is in it.
type segment struct {
	after, head store.ArchiveHead
	first       uint64 // entry
	counts      uint64 // entries up to this one count
	at, next    int64
	tasks       filter
}

// last returns the number of the last entry that counts. It is before the first one where none does.
func (s *segment) last() uint64 { return min(s.head.Entry, s.counts) }

// anew reports whether the archive began anew with the segment.
func (s *segment) anew() bool { return s.after.Sequence != 0 && s.head.Begins == s.after.Sequence }

// file is the archive of a shard.
type file struct {
	shard int
	name  string
	of    *Archive

	writing  sync.Mutex
	size     int64 // guarded by writing, like tail and broken
	tail     int64 // bytes behind the size that a crash has left
	broken   error // of a write that nobody knows the outcome of
	mu       sync.Mutex
	segments []segment
}

// add notes a segment behind the others. Where the archive began anew with it, those before count up to it alone.
func (f *file) add(s segment) {
	s.counts = math.MaxUint64
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.anew() {
		f.segments = slices.Clone(f.segments) // others read the present ones
		for i := range f.segments {
			before := &f.segments[i]
			before.counts = min(before.counts, s.first-1)
		}
	}
	f.segments = append(f.segments, s)
}

// all returns the segments. They never change.
func (f *file) all() []segment {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clip(f.segments)
}

// createFile makes the file of a shard, durably: whoever finds it finds its first record.
func (a *Archive) createFile(shard int) (*file, error) {
	first, err := frame.Append(nil, 0, opening(shard, a.cluster))
	if err != nil {
		return nil, err
	}
	if err := disk.Replace(a.layer, fileName(shard), first); err != nil {
		return nil, err
	}
	return a.openFile(shard)
}

// openFile reads the file of a shard, a record at a time, since it grows for ever. It changes nothing, and fails where
// the file may not be written.
func (a *Archive) openFile(shard int) (*file, error) {
	f := &file{shard: shard, name: fileName(shard), of: a}
	opened, size, err := a.layer.Open(f.name, disk.ToWrite)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.load(opened, size), opened.Close()); err != nil {
		return nil, err
	}
	return f, nil
}

// load notes the segments, up to what a crash has cut short.
func (f *file) load(from io.ReaderAt, size int64) (err error) {
	if f.size, err = f.begins(from, size); err != nil {
		return err
	}
	for f.size < size {
		record, next, err := frame.ReadAt(from, f.size, size)
		if broken, is := errors.AsType[*frame.BrokenError](err); is && broken.Torn {
			f.tail = size - f.size
			return nil
		}
		if err == nil {
			err = f.enter(record, next)
		}
		if err != nil {
			return f.damaged(f.size, err)
		}
		f.size = next
	}
	return nil
}

// settle cuts off what a crash has left at the end, and makes the last segment durable. What a process that ended has
// written is there, but perhaps not synced, also where its sync failed: then no sync makes it durable that finds
// nothing to write, so the segment is written anew. Entries are trimmed once they are told to be archived, so nothing
// may be told of it before. The segments before it were synced before it was written.
func (f *file) settle() error {
	if f.tail > 0 {
		cut := func(to disk.File) error { return to.Truncate(f.size) }
		if err := f.write(cut); err != nil {
			return fmt.Errorf("cut %s at %d: %w", f.name, f.size, err)
		}
	}
	f.tail = 0
	from := int64(0) // the first record alone
	if n := len(f.segments); n > 0 {
		from = f.segments[n-1].at
	}
	if err := f.of.rewriter.RewritePart(f.name, from, f.size); err != nil {
		return fmt.Errorf("write %s anew from %d on: %w", f.name, from, err)
	}
	return nil
}

// write opens the file for a change that do makes, while few others are open so.
func (f *file) write(do func(disk.File) error) error {
	f.of.writing <- struct{}{}
	defer func() { <-f.of.writing }()
	if f.of.closed.Load() {
		return fs.ErrClosed
	}
	to, _, err := f.of.layer.Open(f.name, disk.ToWrite)
	if err != nil {
		return err
	}
	err = do(to)
	_ = to.Close() // whether it was written is known
	return err
}

func (f *file) damaged(at int64, err error) error {
	return fmt.Errorf("%w: %s at offset %d: %w", events.ErrDamaged, f.name, at, err)
}

// begins checks the first record.
func (f *file) begins(from io.ReaderAt, size int64) (int64, error) {
	first, next, err := frame.ReadAt(from, 0, size)
	if err != nil {
		return 0, f.damaged(0, err)
	}
	cluster := f.of.cluster
	want := opening(f.shard, cluster)
	if first.Shard == want.Shard && first.Number == want.Number && slices.Equal(first.Data, want.Data) {
		return next, nil
	}
	other, is := strings.CutPrefix(strings.TrimSpace(string(first.Data)), format)
	if is && other != cluster {
		return 0, fmt.Errorf("%w: %s is of %s, and not of %s", ErrOtherCluster, f.name, other, cluster)
	}
	return 0, f.damaged(0, errors.New("it begins as something else"))
}

// enter notes the segment in a record that ends at next.
func (f *file) enter(record frame.Frame, next int64) error {
	s, entries, err := decode(record.Data)
	if err != nil {
		return err
	}
	if record.Shard != f.shard || record.Number != uint64(len(f.segments))+1 {
		return fmt.Errorf("it holds segment %d of shard %d", record.Number, record.Shard)
	}
	s.head.Entry, s.head.Sequence = entries[len(entries)-1].Number, record.Number
	s.at, s.next = f.size, next
	f.add(s)
	return nil
}

// append writes a segment, unless it is there.
func (f *file) append(after, head store.ArchiveHead, entries []store.Record, tasks filter) (store.ArchiveHead, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	all := f.all()
	if at := after.Sequence; at < uint64(len(all)) && all[at].after == after {
		there, err := f.read(all[at])
		if err != nil {
			return after, err
		}
		if slices.EqualFunc(there, entries, sameRecord) {
			return all[at].head, nil
		}
	}
	var end store.ArchiveHead
	if len(all) > 0 {
		end = all[len(all)-1].head
	}
	anew := after.Sequence != 0 && after.Begins == after.Sequence && end.Sequence == after.Sequence
	if len(all) > 0 && end != after && !anew || len(all) == 0 && after.Sequence != 0 {
		return after, fmt.Errorf("the archive does not end with entry %d: %w", after.Entry, store.ErrConflict)
	}
	head.Sequence = uint64(len(all)) + 1
	s := segment{
		after: after,
		head:  head,
		first: entries[0].Number,
		tasks: tasks,
		at:    f.size,
	}
	if err := f.put(&s, entries); err != nil {
		return after, err
	}
	f.add(s)
	return head, nil
}

// put appends a segment to the file and syncs it. The caller holds writing.
func (f *file) put(s *segment, entries []store.Record) error {
	if f.broken != nil {
		return f.broken
	}
	record, err := frame.Append(nil, f.size, frame.Frame{
		Shard:   f.shard,
		Number:  s.head.Sequence,
		Durable: f.size,
		Data:    encode(s, entries),
	})
	if err != nil {
		return err
	}
	if err := f.write(func(to disk.File) error { return f.putRecord(to, record) }); err != nil {
		return err
	}
	f.size += int64(len(record))
	s.next = f.size
	return nil
}

// putRecord writes a record at the end of the file and syncs it. The caller holds writing.
func (f *file) putRecord(to disk.File, record []byte) error {
	if _, err := to.Write(record); err != nil {
		if cut := to.Truncate(f.size); cut != nil {
			f.broken = errors.Join(err, cut)
		}
		return err
	}
	if err := to.Sync(); err != nil {
		f.broken = fmt.Errorf("nothing is archived any more of shard %d: %w", f.shard, err)
		return f.broken
	}
	return nil
}

// read reads the entries of a segment from the file.
func (f *file) read(s segment) ([]store.Record, error) {
	record := make([]byte, s.next-s.at)
	if _, err := f.of.reading.At(f, f.name).ReadAt(record, s.at); err != nil {
		return nil, err
	}
	stored, _, err := frame.Read(record, 0)
	if err == nil && (stored.Shard != f.shard || stored.Number != s.head.Sequence) {
		err = fmt.Errorf("it holds segment %d of shard %d", stored.Number, stored.Shard)
	}
	if err != nil {
		return nil, f.damaged(s.at, err)
	}
	_, entries, err := decode(stored.Data)
	if err != nil {
		return nil, f.damaged(s.at, err)
	}
	return entries, nil
}

// encode returns the data of a segment.
func encode(s *segment, entries []store.Record) []byte {
	le := binary.LittleEndian
	var data []byte
	for _, n := range []uint64{s.after.Entry, s.after.Sequence, s.after.Begins, s.head.Begins} {
		data = le.AppendUint64(data, n)
	}
	data = le.AppendUint32(data, uint32(len(s.tasks)))
	data = append(data, s.tasks...)
	for _, r := range entries {
		data = le.AppendUint64(data, r.Number)
		data = le.AppendUint64(data, uint64(r.Revision))
		data = le.AppendUint32(data, uint32(len(r.Data)))
		data = append(data, r.Data...)
	}
	return data
}

var errShort = errors.New("the segment ends too early")

// decode reads what encode returned.
func decode(data []byte) (s segment, entries []store.Record, err error) {
	le := binary.LittleEndian
	take := func(n int) []byte {
		if n > len(data) {
			err, n = errShort, 0
			return make([]byte, 8)
		}
		taken := data[:n:n]
		data = data[n:]
		return taken
	}
	for _, n := range []*uint64{&s.after.Entry, &s.after.Sequence, &s.after.Begins, &s.head.Begins} {
		*n = le.Uint64(take(8))
	}
	s.tasks = slices.Clone(filter(take(int(le.Uint32(take(4))))))
	for err == nil && len(data) > 0 {
		r := store.Record{Head: store.Head{Number: le.Uint64(take(8)), Revision: int64(le.Uint64(take(8)))}}
		r.Data = take(int(le.Uint32(take(4))))
		entries = append(entries, r)
	}
	if err == nil && len(entries) == 0 {
		err = errShort
	}
	if err != nil {
		return segment{}, nil, err
	}
	s.first = entries[0].Number
	return s, entries, nil
}
