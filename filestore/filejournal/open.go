package filejournal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
)

// ErrInUse reports that a directory is in use, by another process or by this one.
var ErrInUse = disk.ErrInUse

// Open opens the journal in a directory, which it makes where it is missing, and creates the journal where there is
// none. It wraps ErrInUse, ErrFormat, ErrDurability, or events.ErrDamaged with the name of the file; then nothing was
// changed, but that the directory and its empty file lock are made where they are missing. The caller closes it.
func Open(dir string, o Options) (*Journal, error) {
	j, err := Look(dir, o)
	if err != nil {
		return nil, err
	}
	if err := j.Begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal in %s: %w", dir, err), j.Close())
	}
	return j, nil
}

// Look is Open that leaves the journal as it is until Begin: what is there can be read, and nothing written. So whoever
// refuses what is there has changed nothing.
func Look(dir string, o Options) (*Journal, error) {
	if err := disk.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := checkForeign(dir); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	unlock, err := disk.Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j, err := LookLayer(disk.Dir(dir), o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal in %s: %w", dir, err), unlock())
	}
	j.unlock = unlock
	return j, nil
}

// etcdDir is the directory in which a node keeps etcd that has it inside.
const etcdDir = "etcd"

// checkForeign refuses a directory in which a store of another kind is: what locks that is another lock.
func checkForeign(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, formatFile)); err == nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, etcdDir)); err == nil {
		return fmt.Errorf("%s: %w: there is one of etcd", dir, ErrFormat)
	}
	return nil
}

// CheckWrite returns why this process can make no journal in a directory, or write to the one that is there; nil = it
// can, as far as permissions tell. It changes nothing.
func CheckWrite(dir string) error {
	at := dir
	for {
		err := disk.MayWrite(at)
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return err
		}
		at = filepath.Dir(at)
	}
}

// CheckFree returns an error that wraps ErrInUse where somebody may write to the journal in a directory. It changes
// nothing.
func CheckFree(dir string) error {
	unlock, err := disk.LockToRead(dir, isFile)
	switch {
	case err == nil:
		return unlock()
	case errors.Is(err, ErrInUse):
		return err
	}
	return nil
}

// OpenLayer is Open on a file layer, which nobody else uses. It looks at everything before it changes anything.
func OpenLayer(l disk.Rewritable, o Options) (*Journal, error) {
	j, err := LookLayer(l, o)
	if err != nil {
		return nil, err
	}
	if err := j.Begin(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// LookLayer is Look on a file layer, which nobody else uses.
func LookLayer(l disk.Rewritable, o Options) (*Journal, error) {
	j, last, left, fresh, err := read(l, o.complete())
	if err != nil {
		return nil, errors.Join(err, j.closeFiles())
	}
	j.readOnly = true
	j.makeReady = func() error { return j.begin(last, fresh, left) }
	return j, nil
}

// Begin makes the directory ready for writing, once.
func (j *Journal) Begin() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.makeReady == nil {
		return ErrReadOnly
	}
	begin := j.makeReady
	j.makeReady = nil
	if err := begin(); err != nil {
		return err
	}
	j.forgetRevisions()
	j.readOnly = false
	return nil
}

// forgetRevisions gives the memory back that they take. Entries are added and go from now on.
func (j *Journal) forgetRevisions() {
	j.index.Lock()
	defer j.index.Unlock()
	for _, l := range j.lines {
		l.revisions = nil
	}
}

// read reads what there is, and changes nothing. Of a new journal there is nothing, which fresh tells.
func read(l disk.Rewritable, o Options) (j *Journal, last *run, left *tail, fresh bool, err error) {
	j = &Journal{
		layer:    l,
		rewriter: l,
		options:  o,
		unlock:   func() error { return nil },
		lines:    map[int]*line{},
		reading:  &reading{layer: l, open: map[*segment]*opened{}},
	}
	names, err := l.List()
	if err == nil {
		j.format, fresh, err = readFormat(l, names, o)
	}
	if err == nil {
		last, err = readRun(l)
	}
	if err == nil {
		left, err = j.load(names, last)
	}
	return j, last, left, fresh, err
}

// tail tells what a crash has left of the last segment.
type tail struct {
	segment *segment
	cut     int64 // where it is to be cut; 0 = it never began
	zeros   bool  // a sector of it was never written, so the machine has lost something, also where it went on
}

// load reads which entries are where.
func (j *Journal) load(names []string, last *run) (*tail, error) {
	unread := j.loadSnapshots(names)
	var numbers []uint64
	for _, name := range names {
		if n, is := segmentNumber(name); is {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	newest := uint64(0)
	if len(numbers) > 0 {
		newest = numbers[len(numbers)-1]
	}
	switch {
	case last.Clean && newest != last.Segment:
		return nil, &DamagedError{segmentName(last.Segment), 0, "file run tells that it is the last one, and it is not"}
	case newest < last.Segment:
		return nil, &DamagedError{segmentName(last.Segment), 0, "file run tells that it was begun, and it is not there"}
	}
	var left *tail
	for i, n := range numbers {
		s, content, err := j.readSegment(n)
		if err != nil {
			return nil, err
		}
		begun := func(ends map[int]uint64, next int64) error {
			s.first = next
			return j.missing(s, ends, unread)
		}
		end, err := scan(content, n, begun, func(f found) error { return j.enter(s, f, unread[f.Shard]) })
		isLast := n == last.Segment && n == newest
		switch {
		case err == nil && last.Clean && n == last.Segment && end != last.End:
			return nil, &DamagedError{s.name, end, fmt.Sprintf("file run tells that it was closed with %d bytes", last.End)}
		case isLast && end < last.End && (err == nil || torn(content, end, err)):
			return nil, &DamagedError{s.name, end, fmt.Sprintf("file run tells that %d bytes were synced", last.End)}
		case err == nil:
		case !last.Clean && i == len(numbers)-1 && torn(content, end, err):
			left = &tail{s, end, lacksSector(err)}
		default:
			return nil, damagedAt(s.name, end, err)
		}
	}
	if last.missing && len(j.lines) > 0 { // entries and snapshots are written behind it
		return nil, &DamagedError{runFile, 0, "it is missing"}
	}
	return left, nil
}

// loadSnapshots learns which entries may go. A snapshot that cannot be read says so to whoever reads it, and it names
// no such entry: unread returns its damage, by shard, for where that makes a difference.
func (j *Journal) loadSnapshots(names []string) (unread map[int]error) {
	unread = map[int]error{}
	for _, name := range names {
		k, is := snapshotKey(name)
		if !is {
			continue
		}
		var head frame.Frame
		file, err := disk.ReadAll(j.layer, name)
		if err == nil {
			head, _, err = frame.Read(file, 0)
		}
		if err != nil {
			unread[k.Shard] = damagedAt(name, 0, err)
			continue
		}
		j.line(k.Shard).drop(head.Number)
	}
	return unread
}

// readSegment reads a segment.
func (j *Journal) readSegment(number uint64) (*segment, []byte, error) {
	s := &segment{number: number, name: segmentName(number)}
	content, err := disk.ReadAll(j.layer, s.name)
	if err != nil {
		return nil, nil, err
	}
	s.size = int64(len(content))
	j.segments = append(j.segments, s)
	return s, content, nil
}

// missing returns the damage of entries that were there when a segment began, and that no segment before it has.
func (j *Journal) missing(s *segment, ends map[int]uint64, unread map[int]error) error {
	for _, shard := range slices.Sorted(maps.Keys(ends)) {
		next := j.line(shard).next()
		switch {
		case next >= ends[shard]:
		case unread[shard] != nil:
			return unread[shard]
		default:
			problem := fmt.Sprintf("entries %d to %d of shard %d, which were there when it began, are missing before it",
				next, ends[shard]-1, shard)
			return &DamagedError{s.name, 0, problem}
		}
	}
	return nil
}

// enter notes a record that was read. Where entries of a shard are missing before it, a snapshot must say that they may
// go; where one could not be read that may say so, that is the damage.
func (j *Journal) enter(s *segment, f found, unread error) error {
	l := j.line(f.Shard)
	next := l.next()
	switch {
	case f.Number < l.needed:
		return nil
	case f.Number == next:
		l.add(f.Number, place{s, f.at, f.next})
		l.revisions = append(l.revisions, f.Revision)
		return nil
	case f.Number < next:
		return &DamagedError{s.name, f.at, fmt.Sprintf("entry %d of shard %d follows entry %d", f.Number, f.Shard, next-1)}
	case unread != nil:
		return unread
	}
	problem := fmt.Sprintf("entries %d to %d of shard %d are missing before it", next, f.Number-1, f.Shard)
	return &DamagedError{s.name, f.at, problem}
}

// begin makes the directory ready for writing. The caller holds writing.
func (j *Journal) begin(last *run, fresh bool, left *tail) error {
	if err := j.openLast(); err != nil { // who may not write learns it before anything is changed
		return err
	}
	if err := disk.RemoveUnfinished(j.layer); err != nil {
		return err
	}
	if fresh {
		if err := writeJSON(j.layer, formatFile, j.format); err != nil {
			return err
		}
	}
	j.run = run{Boot: j.options.Boot, Lost: last.Lost}
	crashed := !fresh && !last.Clean && (last.Boot == "" || last.Boot != j.options.Boot)
	switch {
	case j.format.Durability != Opportunistic:
	case crashed:
		j.run.Lost = "the machine stopped while the journal was open, and answered entries may be missing"
	case left != nil && left.zeros:
		j.run.Lost = lostSectors
		if err := j.noteUnsettled(last, fresh); err != nil { // once it is cut nothing tells any more
			return err
		}
	}
	if err := j.settle(!fresh && !last.Clean, left); err != nil {
		return errors.Join(err, j.noteUnsettled(last, fresh))
	}
	j.durable = j.last.size
	j.run.Segment, j.run.End = j.last.number, j.last.size
	return writeRun(j.layer, j.run)
}

// settle makes durable what was found, where the run before has not ended in order, and cuts off what a crash has left.
func (j *Journal) settle(crashed bool, left *tail) error {
	if left != nil {
		if err := j.cut(left); err != nil {
			return fmt.Errorf("cut %s at %d: %w", left.segment.name, left.cut, err)
		}
	}
	if len(j.segments) == 0 {
		first, err := create(j.layer, 1, nil)
		if err != nil {
			return err
		}
		j.segments = append(j.segments, first)
	}
	j.last = j.segments[len(j.segments)-1]
	if crashed {
		// What a process that crashed has written is there, but perhaps not synced, or its sync has failed.
		if err := j.rewriter.RewritePart(j.last.name, 0, j.last.size); err != nil {
			return fmt.Errorf("make %s durable: %w", j.last.name, err)
		}
	}
	return nil
}

// noteUnsettled has the next run report that entries may be lost which this one has found, and could not make durable.
// All else that the file run tells of the run before is still so.
func (j *Journal) noteUnsettled(last *run, fresh bool) error {
	if j.format.Durability != Opportunistic || fresh || last.Clean || last.missing {
		return nil
	}
	now := *last
	now.Lost = cmp.Or(j.run.Lost, failedSync)
	return writeRun(j.layer, now)
}

// openLast opens the last segment to write to it; there may be none.
func (j *Journal) openLast() (err error) {
	if len(j.segments) > 0 {
		last := j.segments[len(j.segments)-1]
		last.file, _, err = j.layer.Open(last.name, disk.ToWrite)
	}
	return err
}

// cut removes what was being written at a crash.
func (j *Journal) cut(left *tail) error {
	if left.cut > 0 {
		left.segment.size = left.cut
		return errors.Join(left.segment.file.Truncate(left.cut), left.segment.file.Sync())
	}
	j.segments = j.segments[:len(j.segments)-1]
	if err := errors.Join(left.segment.file.Close(), j.layer.Remove(left.segment.name), j.layer.SyncDir()); err != nil {
		return err
	}
	if len(j.segments) > 0 {
		return j.openLast()
	}
	first, err := create(j.layer, left.segment.number, j.ends())
	if err == nil {
		j.segments = append(j.segments, first)
	}
	return err
}

// MayLose implements journal.Lossy.
func (j *Journal) MayLose() bool { return j.format.Durability == Opportunistic }

// Lost implements journal.Lossy.
func (j *Journal) Lost() string {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.run.Lost
}

// Told implements journal.Lossy.
func (j *Journal) Told() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	told := j.run
	told.Lost = ""
	if err := writeRun(j.layer, told); err != nil {
		return j.fail(err)
	}
	j.run = told
	return nil
}

// Close implements journal.Journaler.
func (j *Journal) Close() error {
	j.snapshots.Lock()
	defer j.snapshots.Unlock()
	j.writing.Lock()
	if j.closed {
		j.writing.Unlock()
		return nil
	}
	err := j.end()
	j.closed = true
	if j.flush != nil && j.flush.Stop() {
		j.flushes.Done()
	}
	j.writing.Unlock()
	j.flushes.Wait()
	if err = errors.Join(err, j.closeFiles(), j.unlock()); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// end makes durable what was written, and notes that the run has ended. The caller holds writing.
func (j *Journal) end() error {
	switch {
	case j.readOnly:
		return nil
	case j.Failed() != nil:
		j.noteLoss()
		return j.Failed()
	}
	if err := j.sync(); err != nil {
		return err
	}
	j.run.Clean, j.run.Segment, j.run.End = true, j.last.number, j.last.size
	return writeRun(j.layer, j.run)
}

func (j *Journal) closeFiles() error {
	j.reading.closeAll()
	if len(j.segments) == 0 {
		return nil
	}
	last := j.segments[len(j.segments)-1]
	if last.file == nil {
		return nil
	}
	return last.file.Close()
}
