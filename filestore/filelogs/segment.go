package filelogs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"taskledger/events"
	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
	"taskledger/tasklog"
)

const (
	// openingShard is the shard of the first record of a segment.
	openingShard = -2
	// format begins the data of the first record; the id of the cluster follows.
	format = "taskledger logs 1 of "

	filePrefix = "logs-"
)

// segment is a file of records.
type segment struct {
	number uint64
	name   string
	file   disk.File // of the last one, which is written to; nil = it is opened when it is read
	syncs  disk.Syncing
	size   int64
	began  int64 // milliseconds since 1970
	newest int64 // the same, of its last record

	live     int   // batches that are there
	dead     int   // batches that were removed
	bytes    int64 // of the records of those that are there
	removals int64 // bytes of the records of removals
}

func segmentName(number uint64) string { return fmt.Sprintf("%s%016x", filePrefix, number) }

func segmentNumber(name string) (uint64, bool) {
	digits, is := strings.CutPrefix(name, filePrefix)
	if !is || len(digits) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, err == nil && segmentName(n) == name
}

func isSegment(name string) bool {
	_, is := segmentNumber(name)
	return is
}

// begun returns the first record of a segment, whose data tell people and programs what it is.
func begun(number uint64, began int64, cluster string) ([]byte, error) {
	return frame.Append(nil, 0, frame.Frame{
		Shard:    openingShard,
		Number:   number,
		Revision: began,
		Data:     []byte(format + cluster + "\n"),
	})
}

// close closes the file of a segment that is written to.
func (s *segment) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// damaged names where a segment is corrupt.
func (s *segment) damaged(at int64, err error) error {
	return fmt.Errorf("%w: %s at offset %d: %w", events.ErrDamaged, s.name, at, err)
}

// create makes a segment, durably: whoever finds it finds its first record.
func (l *Logs) create(number uint64) (*segment, error) {
	began := now()
	first, err := begun(number, began, l.cfg.Cluster)
	if err != nil {
		return nil, err
	}
	s := &segment{
		number: number,
		name:   segmentName(number),
		began:  began,
		newest: began,
	}
	if err := disk.Replace(l.layer, s.name, first); err != nil {
		return nil, err
	}
	s.file, s.size, err = l.layer.Open(s.name, disk.ToWrite)
	return s, err
}

// readAll reads all segments, and returns where to cut what a crash has left of the last one; 0 = nowhere. It changes
// nothing.
func (l *Logs) readAll() (cut int64, err error) {
	names, err := l.layer.List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	var numbers []uint64
	for _, name := range names {
		if n, is := segmentNumber(name); is {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if cut, err = l.loadSegment(n, i == len(numbers)-1); err != nil {
			return 0, err
		}
	}
	return cut, nil
}

// settle makes the directory ready for writing.
func (l *Logs) settle(cut int64) error {
	if err := disk.RemoveUnfinished(l.layer); err != nil {
		return err
	}
	if len(l.segments) == 0 {
		first, err := l.create(1)
		if err != nil {
			return err
		}
		l.segments, l.durable = append(l.segments, first), first.size
		return nil
	}
	last := l.last()
	if cut > 0 {
		if err := last.file.Truncate(cut); err != nil {
			return fmt.Errorf("cut %s at %d: %w", last.name, cut, err)
		}
	}
	// What a process that ended has written is there, but perhaps not synced, also where its sync failed: then no sync
	// makes it durable that finds nothing to write. Whoever reads a batch that is there takes it for acknowledged, and
	// later ones are put behind it, so what was not known to be synced is written anew.
	if err := l.rewriter.RewritePart(last.name, l.durable, last.size); err != nil {
		return fmt.Errorf("write %s anew from %d on: %w", last.name, l.durable, err)
	}
	if err := l.layer.SyncDir(); err != nil {
		return err
	}
	l.durable = last.size
	return nil
}

// loadSegment reads a segment. Of the last one it returns where to cut what a crash has left; 0 = nowhere.
func (l *Logs) loadSegment(number uint64, isLast bool) (cut int64, err error) {
	s := &segment{number: number, name: segmentName(number)}
	content, err := disk.ReadAll(l.layer, s.name)
	if err == nil && isLast {
		s.file, _, err = l.layer.Open(s.name, disk.ToWrite)
	}
	if err != nil {
		return 0, err
	}
	l.segments, l.durable = append(l.segments, s), 0
	if s.size, err = s.begins(content, l.cfg.Cluster); err != nil {
		return 0, err
	}
	for s.size < int64(len(content)) {
		f, next, err := frame.Read(content, s.size)
		broken, is := errors.AsType[*frame.BrokenError](err)
		if is && isLast && broken.Torn && frame.DurableAfter(content, s.size) <= s.size {
			return s.size, nil
		}
		if err == nil {
			err = l.enter(s, f, s.size, next)
		}
		if err != nil {
			return 0, s.damaged(s.size, err)
		}
		s.size, l.durable = next, f.Durable // as it was known when the last record was written
	}
	return 0, nil
}

// begins checks the first record of a segment.
func (s *segment) begins(content []byte, cluster string) (int64, error) {
	first, next, err := frame.Read(content, 0)
	if err != nil {
		return 0, s.damaged(0, err)
	}
	of, is := strings.CutPrefix(string(first.Data), format)
	switch of := strings.TrimSuffix(of, "\n"); {
	case !is || first.Shard != openingShard || first.Number != s.number:
		return 0, s.damaged(0, errors.New("it begins as something else"))
	case of != cluster:
		return 0, fmt.Errorf("%w: %s is of %s, and not of %s", ErrOtherCluster, s.name, of, cluster)
	}
	s.began, s.newest = first.Revision, first.Revision
	return next, nil
}

// enter notes a record that was read.
func (l *Logs) enter(s *segment, f frame.Frame, at, next int64) error {
	s.newest = max(s.newest, f.Revision)
	l.place = max(l.place, f.Number)
	if f.Shard < 0 || f.Shard > 1<<16-1 {
		return errRecord
	}
	if f.Data[0] != kindBatch {
		r, err := decodeRemoval(f)
		if err != nil {
			return err
		}
		s.removals += next - at
		l.forgetAll(l.index.remove(uint16(f.Shard), r))
		return nil
	}
	of, b, err := decodeBatch(f)
	if err != nil {
		return err
	}
	if !l.add(of, placed(s, f.Number, at, next, b)) {
		s.dead++ // it stands in the segment before, too, into which it was copied
	}
	return nil
}

// placed returns what is noted of a batch.
func placed(s *segment, place uint64, at, next int64, b tasklog.Batch) stored {
	return stored{
		in:    s,
		place: place,
		at:    at,
		next:  next,
		first: b.First,
		last:  b.Last(),
		since: b.Lines[0].At,
		until: b.Lines[len(b.Lines)-1].At,
	}
}

// add notes a batch. The caller holds mu.
func (l *Logs) add(of tasklog.Attempt, at stored) bool {
	if !l.index.add(of, at) {
		return false
	}
	at.in.live++
	at.in.bytes += at.next - at.at
	l.batches++
	return true
}

// forgetAll counts batches that are no more in the index. The caller holds mu.
func (l *Logs) forgetAll(gone []stored) {
	for _, g := range gone {
		g.in.live--
		g.in.dead++
		g.in.bytes -= g.next - g.at
	}
	l.batches -= len(gone)
}
