package filejournal

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
	"taskledger/filestore/journal"
)

// ErrClosed reports a use after Close.
var ErrClosed = errors.New("journal is closed")

// Journal is a journal in the files of one directory. It implements journal.Journaler, journal.Lossy and
// journal.Surveyed.
type Journal struct {
	layer    disk.Layer
	rewriter disk.Rewriter // of the layer
	format   format
	options  Options
	unlock   func() error

	queue   sync.Mutex // guards waiting
	waiting []*write

	// writing guards the file that is written to, and what becomes of it. It is taken before index.
	writing sync.Mutex
	last    *segment
	durable int64     // offset in the last segment up to which it is synced
	oldest  time.Time // no entry behind durable was written before it
	flush   *time.Timer
	flushes sync.WaitGroup
	broken  atomic.Pointer[error] // of the write that nobody knows the outcome of; nil = there was none
	closed  bool
	run     run

	readOnly  bool         // nothing is written, for good or until makeReady
	makeReady func() error // of a journal that was looked at; nil = it is as ready as it ever is

	// snapshots is held, to read, while one is written, and taken to end that; keys and compacting are taken after it, and
	// before writing.
	snapshots  sync.RWMutex
	keys       keyLocks
	compacting sync.Mutex

	index    sync.RWMutex
	lines    map[int]*line
	segments []*segment // in order; the last one is last
	reading  *reading   // used by whoever holds index, at least to read
}

var (
	_ journal.Journaler = (*Journal)(nil)
	_ journal.Lossy     = (*Journal)(nil)
	_ journal.Surveyed  = (*Journal)(nil)
)

// Durability returns the durability with which the journal was created.
func (j *Journal) Durability() Durability { return j.format.Durability }

// write is an entry that waits to be written.
type write struct {
	entry journal.Entry
	done  bool
	err   error
}

// Append implements journal.Journaler. Entries that come while others are being written are written together, and
// synced once.
func (j *Journal) Append(e journal.Entry) error {
	w := &write{entry: e}
	j.queue.Lock()
	j.waiting = append(j.waiting, w)
	j.queue.Unlock()

	j.writing.Lock()
	if !w.done {
		j.queue.Lock()
		all := j.waiting
		j.waiting = nil
		j.queue.Unlock()
		j.writeAll(all)
	}
	j.writing.Unlock()
	if w.err != nil {
		return fmt.Errorf("append entry %d of shard %d: %w", e.Number, e.Shard, w.err)
	}
	return nil
}

// writeAll writes what waits, and says to each what became of it. The caller holds writing.
func (j *Journal) writeAll(all []*write) {
	for len(all) > 0 {
		n, err := j.writeSome(all)
		for _, w := range all[:n] {
			w.done, w.err = true, err
		}
		all = all[n:]
	}
}

// maxBatch bounds the bytes that are encoded for one write.
const maxBatch = 4 << 20

// writeSome writes the first of what waits, and returns how many.
func (j *Journal) writeSome(all []*write) (int, error) {
	if err := j.ready(); err != nil {
		return len(all), err
	}
	if j.last.size >= j.options.SegmentBytes {
		if err := j.rotate(); err != nil {
			return len(all), err
		}
	}
	var buf []byte
	var places []place
	for i, w := range all {
		if len(buf) > 0 && len(buf)+len(w.entry.Data) > maxBatch {
			break
		}
		next, err := j.encode(buf, all, i)
		if err != nil && len(places) > 0 {
			break // it is the first one of its own
		}
		if err != nil {
			return 1, err
		}
		places = append(places, place{j.last, j.last.size + int64(len(buf)), j.last.size + int64(len(next))})
		buf = next
	}
	if err := j.put(buf); err != nil {
		return len(places), err
	}
	j.index.Lock()
	defer j.index.Unlock()
	for i, at := range places {
		e := &all[i].entry
		j.line(e.Shard).add(e.Number, at)
	}
	return len(places), nil
}

// encode adds the record of one of some entries, those before which are written with it. It refuses an entry that does
// not follow the last one of its shard: once that is written, no journal with it can be opened. The caller holds
// writing.
func (j *Journal) encode(buf []byte, all []*write, at int) ([]byte, error) {
	e := &all[at].entry
	if next := j.next(all[:at], e.Shard); e.Number != next {
		return nil, fmt.Errorf("it does not follow: entry %d is due", next)
	}
	return frame.Append(buf, j.last.size, frame.Frame{
		Shard:    e.Shard,
		Number:   e.Number,
		Revision: e.Revision,
		Durable:  j.durable,
		Data:     e.Data,
	})
}

// next returns the number of the next entry of a shard, once some others are written.
func (j *Journal) next(before []*write, shard int) uint64 {
	for _, w := range slices.Backward(before) {
		if w.entry.Shard == shard {
			return w.entry.Number + 1
		}
	}
	j.index.RLock()
	defer j.index.RUnlock()
	return j.lines[shard].next()
}

// ready returns why nothing can be written. The caller holds writing.
func (j *Journal) ready() error {
	if j.closed {
		return ErrClosed
	}
	if j.readOnly {
		return disk.ErrReadOnly
	}
	return j.Failed()
}

// fail ends all writing: nobody knows what the disk holds. The caller holds writing.
func (j *Journal) fail(err error) error {
	broken := fmt.Errorf("nothing is written any more since %s: %w", j.last.name, err)
	if j.broken.CompareAndSwap(nil, &broken) {
		j.noteLoss()
	}
	return j.Failed()
}

// noteLoss has the next run report that entries may be lost where some were answered and are not synced: some file
// systems give up what a sync has failed to write, so that nothing of it is read any more, though the machine goes on.
// Where that cannot be noted, either, Close tries again, and after that nothing tells but another boot id. The caller
// holds writing.
func (j *Journal) noteLoss() {
	if j.format.Durability != Opportunistic || j.durable == j.last.size || j.run.Lost != "" {
		return
	}
	now := j.run
	now.Lost = failedSync
	if err := writeRun(j.layer, now); err == nil {
		j.run = now
	}
}

// Failed implements journal.Lossy.
func (j *Journal) Failed() error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// put writes to the end of the last segment, and syncs it as far as the durability asks for. Where there is no room,
// what was written of it is cut off, durably: it may hold whole records of entries that are refused. The caller holds
// writing.
func (j *Journal) put(data []byte) error {
	if _, err := j.last.file.Write(data); err != nil {
		if !disk.Full(err) {
			return j.fail(err)
		}
		cut := j.last.file.Truncate(j.last.size)
		if cut == nil {
			cut = j.last.syncs.Sync(j.last.file)
		}
		if cut != nil {
			return j.fail(errors.Join(err, cut))
		}
		j.durable = j.last.size
		return fmt.Errorf("%w: %w", journal.ErrFull, err)
	}
	now := j.options.now()
	if j.durable == j.last.size {
		j.oldest = now
	}
	j.last.size += int64(len(data))
	if j.format.Durability == Opportunistic && now.Sub(j.oldest) < j.format.lag() {
		j.armFlush()
		return nil
	}
	return j.sync() // a slow sync holds up the answers, so that no more than those of the lag wait for it
}

// sync syncs the last segment. The caller holds writing.
func (j *Journal) sync() error {
	if j.durable == j.last.size {
		return nil
	}
	if err := j.last.syncs.Sync(j.last.file); err != nil {
		return j.fail(err)
	}
	j.durable = j.last.size
	return nil
}

// armFlush has the log synced soon. The caller holds writing.
func (j *Journal) armFlush() {
	if j.flush != nil {
		return
	}
	j.flushes.Add(1)
	j.flush = time.AfterFunc(j.format.lag()/2, func() {
		defer j.flushes.Done()
		_ = j.flushNow() // Failed tells, and the next write
	})
}

// flushNow syncs what was written up to now, while others go on writing.
func (j *Journal) flushNow() error {
	j.writing.Lock()
	j.flush = nil
	j.writing.Unlock()
	return j.syncNow()
}

// syncNow syncs what was written up to now, while others go on writing.
func (j *Journal) syncNow() error {
	j.writing.Lock()
	if err := j.ready(); err != nil || j.durable == j.last.size {
		j.writing.Unlock()
		return err
	}
	in, end, began := j.last, j.last.size, j.options.now()
	j.writing.Unlock()
	err := in.syncs.Sync(in.file)
	j.writing.Lock()
	defer j.writing.Unlock()
	if err != nil {
		return j.fail(err)
	}
	if in == j.last && end > j.durable { // else it was synced when the next one began, or by a write
		j.durable, j.oldest = end, began
	}
	return nil
}

// rotate begins another segment. The one before is synced, so it ends where it ends for good. The caller holds
// writing.
func (j *Journal) rotate() error {
	if err := j.sync(); err != nil {
		return err
	}
	next, err := create(j.layer, j.last.number+1, j.ends())
	if disk.Full(err) {
		return fmt.Errorf("begin another segment: %w: %w", journal.ErrFull, err)
	}
	if err != nil {
		return j.fail(err)
	}
	j.last.syncs.End()
	_ = j.last.file.Close() // it is synced, and written to no more
	j.last, j.durable = next, next.size
	j.index.Lock()
	j.segments = append(j.segments, next)
	j.index.Unlock()
	return j.began(next)
}

// ends returns the numbers of the next entries of all shards.
func (j *Journal) ends() map[int]uint64 {
	j.index.RLock()
	defer j.index.RUnlock()
	all := map[int]uint64{}
	for shard, l := range j.lines {
		if next := l.next(); shard >= 0 && next > 1 {
			all[shard] = next
		}
	}
	return all
}

// began notes that a segment was begun, so that it is missed after a crash, too. Without room for that the one before
// stays noted, which tells less and nothing wrong. The caller holds writing.
func (j *Journal) began(s *segment) error {
	now := j.run
	now.Segment, now.End = s.number, s.size
	switch err := writeRun(j.layer, now); {
	case err == nil:
		j.run = now
	case !disk.Full(err):
		return j.fail(err)
	}
	return nil
}

// line returns that of a shard. The caller holds index.
func (j *Journal) line(shard int) *line {
	l := j.lines[shard]
	if l == nil {
		l = &line{}
		j.lines[shard] = l
	}
	return l
}

// pageEntries bounds the entries whose places a reader takes at a time.
const pageEntries = 16

// Read implements journal.Journaler. An entry whose record has been damaged since the journal was opened yields a
// DamagedError.
func (j *Journal) Read(shard int, from uint64) iter.Seq2[journal.Entry, error] {
	j.index.RLock()
	until := from + uint64(len(j.lines[shard].from(from)))
	j.index.RUnlock()
	return func(yield func(journal.Entry, error) bool) {
		for from := from; from < until; {
			page, err := j.page(shard, from, until)
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				from++
			}
			if err != nil {
				yield(journal.Entry{}, err)
				return
			}
			if len(page) == 0 {
				return // they have gone meanwhile
			}
		}
	}
}

// page reads the next entries. The files that hold them stay while the index is held.
func (j *Journal) page(shard int, from, until uint64) (page []journal.Entry, err error) {
	j.index.RLock()
	defer j.index.RUnlock()
	places := j.lines[shard].from(from)
	for _, at := range places[:min(len(places), pageEntries, int(until-from))] {
		e, err := j.read(at)
		if err == nil && (e.Shard != shard || e.Number != from) {
			err = &DamagedError{at.in.name, at.at, fmt.Sprintf("it holds entry %d of shard %d", e.Number, e.Shard)}
		}
		if err != nil {
			return page, fmt.Errorf("read entry %d of shard %d: %w", from, shard, err)
		}
		page = append(page, e)
		from++
	}
	return page, nil
}

// read reads the entry at a place. The caller holds index.
func (j *Journal) read(p place) (journal.Entry, error) {
	record := make([]byte, p.next-p.at)
	if err := j.reading.readAt(p.in, record, p.at); err != nil {
		return journal.Entry{}, err
	}
	f, _, err := frame.Read(record, 0)
	if err != nil {
		return journal.Entry{}, &DamagedError{p.in.name, p.at, err.Error()}
	}
	return entryOf(f), nil
}
