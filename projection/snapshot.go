package projection

import (
	"hash/crc32"

	"taskledger/events"
	"taskledger/internal/wire"
)

// PartBytes bounds a part of a snapshot, unless a single task or sender takes more: writing larger values delays those of
// other shards.
const PartBytes = 64 << 10

// snapshotVersion is the first value of a stored part.
const snapshotVersion = 1

// Snapshot is the state of a shard after an entry, written piece by piece while the shard goes on: what a further entry
// changes or removes is written, as it was, before. It belongs to whom the shard belongs to.
//
// A snapshot is stored as parts 0, 1, 2 ..., each a msgpack array
//
//	[1, shard, entry, hash, time, tasks, senders, part, [kind ...], [task ...], [sender ...], sum]
//
// where hash and time are those of the entry, tasks and senders count those of the whole snapshot, part counts from 0, and
// sum is the CRC-32C of all bytes before it, stored in four bytes. All values are alike in every part of a snapshot from
// the first to senders. The last part is the one with which all tasks and senders are there. A kind is the array
//
//	[behavior, policy]
//
// with the policy as in Created; kinds are numbered from 0 through all parts. A task is the array
//
//	[id, kind, status, flags, priority, seq, created, created at, last, due, params, params at, [request id ...], run]
//
// in no order, with the number of its kind and the sum of its flags: 1 suspended, 2 cancelled, 4 rerun, 8 run ended,
// 16 parameters elided, 32 result elided. run is empty for a task that is CREATED, else the array
//
//	[attempt, failures, lost, runs, node, offer, lease, started, started at, outcome, ended at, result, [error], progress]
//
// with an empty array for no error and for no progress, which is [done, total, note]. A sender is the array
//
//	[sender, lane, number, answers, last use]
//
// the least recently used first, with the last use as if no gap between entries since then had been longer than ten
// minutes. Events are named by their Refs, times are in milliseconds.
type Snapshot struct {
	Entry uint64 // the state is the one after it
	Bytes int64  // of all parts so far

	shard    *Shard // nil when nothing more is to be written
	head     snapshotHead
	unsaved  int           // rows of the shard that are to be written: the first ones
	unsent   []*Decided    // senders that are to be written
	lag      events.Millis // of their clock
	numbers  map[*Kind]uint64
	complete bool

	// The part in the making.
	part                  uint64
	kinds, tasks, senders section
	scratch               wire.Writer // a task or sender
	full                  [][]byte    // parts to take out
}

// snapshotHead is what all parts of a snapshot say.
type snapshotHead struct {
	entry          uint64
	hash           events.Hash
	time           events.Millis
	tasks, senders uint64
}

// headBytes bounds what a part holds besides kinds, tasks and senders.
const headBytes = 128

// section is an array in the making.
type section struct {
	wire.Writer
	n int
}

// BeginSnapshot begins a snapshot of the state as it is, which must be that after a whole entry. Its cost grows with the
// number of senders alone. One is under way at a time: an earlier one ends.
func (s *Shard) BeginSnapshot() *Snapshot {
	if s.snapshot != nil {
		s.snapshot.End()
	}
	lanes := s.senders.all()
	s.snapshot = &Snapshot{Entry: s.Number, shard: s, unsaved: len(s.rows), unsent: lanes, numbers: map[*Kind]uint64{},
		lag:  s.senders.lag,
		head: snapshotHead{s.Number, s.Hash, s.Time, uint64(len(s.rows)), uint64(len(lanes))}}
	return s.snapshot
}

// Step writes up to so many further tasks and senders, fewer when they fill a part. It reports whether all is written, which
// takes a further task to find out; what ended never is.
func (sn *Snapshot) Step(tasks int) (done bool) {
	parts := len(sn.full)
	for ; tasks > 0 && len(sn.full) == parts; tasks-- {
		switch {
		case sn.unsaved > 0:
			sn.save(sn.shard.rows[sn.unsaved-1])
		case len(sn.unsent) > 0:
			sn.saveSender(sn.unsent[0])
			sn.unsent = sn.unsent[1:]
		default:
			sn.finish()
			return sn.complete
		}
	}
	return false
}

// finish completes the last part.
func (sn *Snapshot) finish() {
	if sn.shard == nil {
		return
	}
	sn.cut()
	sn.complete = true
	sn.release()
}

// Parts takes out the parts that are full, and once all is written the last one. They are the caller's.
func (sn *Snapshot) Parts() [][]byte {
	parts := sn.full
	sn.full = nil
	return parts
}

// End forgets what is written and what is not. It may be called at any time, and again.
func (sn *Snapshot) End() {
	if sn.shard != nil {
		sn.release()
	}
	sn.full, sn.complete = nil, false
}

// release lets go of the shard, which from now on changes without a look at the snapshot.
func (sn *Snapshot) release() {
	sn.shard.snapshot = nil
	*sn = Snapshot{Entry: sn.Entry, Bytes: sn.Bytes, full: sn.full, complete: sn.complete}
}

// keepImage must be called before a task is changed or removed.
func (s *Shard) keepImage(t *Task) {
	if s.snapshot != nil && int(t.row) < s.snapshot.unsaved {
		s.snapshot.save(t)
	}
}

// save writes a task of the rows to be written, which then is none of them.
func (sn *Snapshot) save(t *Task) {
	sn.unsaved--
	sn.shard.swap(int(t.row), sn.unsaved)

	var kind wire.Writer
	number, known := sn.numbers[t.Kind]
	if !known {
		number = uint64(len(sn.numbers))
		sn.numbers[t.Kind] = number
		t.Kind.encode(&kind)
	}
	sn.scratch.B = sn.scratch.B[:0]
	t.encode(&sn.scratch, number)
	sn.makeRoom(len(kind.B) + len(sn.scratch.B))
	if !known {
		sn.kinds.add(kind.B)
	}
	sn.tasks.add(sn.scratch.B)
}

func (sn *Snapshot) saveSender(d *Decided) {
	w := &sn.scratch
	w.B = w.B[:0]
	w.Array(5)
	w.Text(d.Sender)
	w.Uint(uint64(d.Lane))
	w.Uint(d.Number)
	w.Bytes(d.Answers)
	w.Int(int64(d.lastUse + sn.lag))
	sn.makeRoom(len(w.B))
	sn.senders.add(w.B)
}

// makeRoom completes the part in the making if it cannot take n bytes more.
func (sn *Snapshot) makeRoom(n int) {
	if sn.tasks.n+sn.senders.n > 0 && headBytes+len(sn.kinds.B)+len(sn.tasks.B)+len(sn.senders.B)+n > PartBytes {
		sn.cut()
	}
}

// cut completes the part in the making and begins the next.
func (sn *Snapshot) cut() {
	w := wire.Writer{B: make([]byte, 0, headBytes+len(sn.kinds.B)+len(sn.tasks.B)+len(sn.senders.B))}
	w.Array(12)
	w.Uint(snapshotVersion)
	w.Uint(uint64(sn.shard.id))
	w.Uint(sn.head.entry)
	w.Bytes(sn.head.hash[:])
	w.Int(int64(sn.head.time))
	w.Uint(sn.head.tasks)
	w.Uint(sn.head.senders)
	w.Uint(sn.part)
	sn.kinds.moveTo(&w)
	sn.tasks.moveTo(&w)
	sn.senders.moveTo(&w)
	w.B = appendSum(w.B)
	sn.part++
	sn.full = append(sn.full, w.B)
	sn.Bytes += int64(len(w.B))
}

func (s *section) add(value []byte) {
	s.B = append(s.B, value...)
	s.n++
}

func (s *section) moveTo(w *wire.Writer) {
	w.Array(s.n)
	w.B = append(w.B, s.B...)
	s.B, s.n = s.B[:0], 0
}

// sumBytes is the size of the sum that ends a part.
const sumBytes = 5

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendSum(b []byte) []byte {
	sum := crc32.Checksum(b, castagnoli)
	return append(b, 0xce, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}
