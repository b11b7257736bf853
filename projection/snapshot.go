package projection

import (
	"hash/crc32"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/name"
)

// PartBytes bounds a part of a snapshot, unless a single task or sender takes more: writing larger values delays
// those of other shards.
const PartBytes = 64 << 10

// SnapshotVersion is the first value of a stored part: the version that this program writes, and the only one that
// it reads.
const SnapshotVersion = 3

// Snapshot is the state of a shard after an entry, written piece by piece while the shard goes on: what a further
// entry changes or removes is written, as it was, before. Only the goroutine that has the shard may use it.
//
// A snapshot is stored as parts 0, 1, 2 ..., each a msgpack array
//
//	[3, shard, entry, hash, time, [[section, count] ...], part, [[section, [row ...]] ...], sum]
//
// where hash and time are those of the entry, part counts from 0, and sum is the CRC-32C of all bytes before it,
// stored in four bytes. A section is named by a text; a program that does not know one does not read the snapshot.
// The counts are those of the rows in the whole snapshot, of each section that has any and is not a table of what
// rows of others refer to. All values are alike in every part of a snapshot from the first to the counts. The last
// part is the one with which all rows are there. A part holds the sections of which it has rows. They come, in both
// places, in this order:
//
// nodes and kinds are tables. Their rows are numbered from 0 through all parts. A node is the session id of one
// that has run a task, as text. A kind is
//
//	[behavior, policy, creator]
//
// with the policy as in Created and without a creator that is not known. tasks are in no order:
//
//	[id, kind, status, flags, priority, seq, created, created at, last, due, params, params at, [request ...], run, wait,
//	description]
//
// with the number of its kind and the sum of its flags: 1 suspended, 2 cancelled, 4 rerun, 8 run ended, 16 parameters
// elided, 32 result elided, 64 error elided, and 128, 256 or 384 for a run of a schedule that has a UUID for a name: of
// a tick, by hand, of a backfill. Of the last four values those at the end that are empty are left out. run is empty
// for a task that is CREATED, else the array below. A request is [id, run, at].
//
//	[attempt, failures, lost, runs, node, offer, lease, started, started at, outcome, ended at, result, [error], progress]
//
// with the number of the node of the last attempt, nil for none, and with an empty array for no error and for no
// progress, which is [done, total, note]. wait is the array of what a Wait tells
//
//	[cause, since, suspended at, by, reason, suspended by, suspended for]
//
// or an empty array, with the stored number of the kind that is the cause. description is [[tag ...], deadline]. Events
// are named by their Refs, times are in milliseconds. The rows of the sections after the tasks are described where they
// are written: see section.
type Snapshot struct {
	Entry uint64 // the state is the one after it
	Bytes int64  // of all parts so far

	shard    *Shard // nil when nothing more is to be written
	head     snapshotHead
	unsaved  int                     // tasks that are to be written
	below    events.Ref              // they were created before this event
	early    map[events.Ref]struct{} // tasks created before it that are written already
	unsent   []listed                // sections after the tasks that are to be written
	numbers  map[*Kind]uint64
	nodes    map[string]uint64 // their numbers
	complete bool

	// The part in the making.
	part    uint64
	made    []rows // by section, in stored order
	bytes   int    // of them
	scratch wire.Writer
	full    [][]byte // parts to take out
}

// snapshotHead holds what all parts of a snapshot say.
type snapshotHead struct {
	entry  uint64
	hash   events.Hash
	time   events.Millis
	counts []uint64 // of rows, by section
}

// headBytes bounds what a part holds besides rows.
const headBytes = 256

// rows is an array in the making.
type rows struct {
	wire.Writer
	n int
}

// BeginSnapshot begins a snapshot of the state as it is, which must be that after a whole entry. Its cost grows
// with the number of senders alone. One is under way at a time: an earlier one ends.
func (s *Shard) BeginSnapshot() *Snapshot {
	if s.snapshot != nil {
		s.snapshot.End()
	}
	sn := &Snapshot{
		Entry:   s.Number,
		shard:   s,
		unsaved: s.created.count,
		below:   events.RefOf(s.Number+1, 0),
		early:   map[events.Ref]struct{}{},
		numbers: map[*Kind]uint64{},
		nodes:   map[string]uint64{},
		made:    make([]rows, sectionCount),
		head:    snapshotHead{s.Number, s.Hash, s.Time, make([]uint64, sectionCount)},
	}
	sn.head.counts[ofTasks] = uint64(s.created.count)
	for i, of := range s.sections() {
		l := listed{section: firstListed + i}
		l.rows, l.write = of.List()
		sn.head.counts[l.section] = uint64(l.rows)
		sn.unsent = append(sn.unsent, l)
	}
	s.snapshot = sn
	return sn
}

// Step writes up to so many further rows, fewer when they fill a part. It reports whether all is written, which
// takes a further row to find out; what ended never is.
func (sn *Snapshot) Step(rows int) (done bool) {
	parts := len(sn.full)
	var tasks walk
	if sn.unsaved > 0 {
		tasks = sn.shard.created.before(sn.below)
	}
	for ; rows > 0 && len(sn.full) == parts; rows-- {
		for len(sn.unsent) > 0 && sn.unsent[0].next == sn.unsent[0].rows {
			sn.unsent = sn.unsent[1:]
		}
		switch {
		case sn.unsaved > 0:
			sn.saveInTurn(tasks.next())
		case len(sn.unsent) > 0:
			sn.saveNext(&sn.unsent[0])
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
	sn := s.snapshot
	if sn == nil || t.Created >= sn.below {
		return
	}
	if _, written := sn.early[t.Created]; !written {
		sn.early[t.Created] = struct{}{}
		sn.save(t)
	}
}

// imageKept must be called when a task is removed.
func (s *Shard) imageKept(t *Task) {
	if s.snapshot != nil {
		delete(s.snapshot.early, t.Created)
	}
}

// saveInTurn writes the newest task that is not written, or passes over one that was written early.
func (sn *Snapshot) saveInTurn(t *Task) {
	sn.below = t.Created
	if _, written := sn.early[t.Created]; written {
		delete(sn.early, t.Created)
		return
	}
	sn.save(t)
}

// save writes a task that is to be written.
func (sn *Snapshot) save(t *Task) {
	if sn.unsaved--; sn.unsaved == 0 {
		sn.below, sn.early = 0, nil
	}

	var kind wire.Writer
	number, known := sn.numbers[t.Kind]
	if !known {
		number = uint64(len(sn.numbers))
		sn.numbers[t.Kind] = number
		t.Kind.encode(&kind)
	}
	var named wire.Writer
	node, met := sn.nodes[t.LastNode.String()]
	if !met && t.LastNode != (name.Name{}) {
		node = uint64(len(sn.nodes))
		sn.nodes[t.LastNode.String()] = node
		named.Text(t.LastNode.String())
	}
	sn.scratch.B = sn.scratch.B[:0]
	t.encode(&sn.scratch, number, node, t.Run)
	sn.makeRoom(len(kind.B) + len(named.B) + len(sn.scratch.B))
	if len(named.B) > 0 {
		sn.add(ofNodes, named.B)
	}
	if !known {
		sn.add(ofKinds, kind.B)
	}
	sn.add(ofTasks, sn.scratch.B)
}

// saveNext writes the next row of a section.
func (sn *Snapshot) saveNext(l *listed) {
	sn.scratch.B = sn.scratch.B[:0]
	l.write(l.next, &sn.scratch)
	l.next++
	sn.makeRoom(len(sn.scratch.B))
	sn.add(l.section, sn.scratch.B)
}

// makeRoom completes the part in the making if it cannot take n bytes more.
func (sn *Snapshot) makeRoom(n int) {
	if sn.bytes > 0 && headBytes+sn.bytes+n > PartBytes {
		sn.cut()
	}
}

func (sn *Snapshot) add(section int, row []byte) {
	to := &sn.made[section]
	to.B = append(to.B, row...)
	to.n++
	sn.bytes += len(row)
}

// cut completes the part in the making and begins the next.
func (sn *Snapshot) cut() {
	w := wire.Writer{B: make([]byte, 0, headBytes+sn.bytes)}
	w.Array(9)
	w.Uint(SnapshotVersion)
	w.Uint(uint64(sn.shard.id))
	w.Uint(sn.head.entry)
	w.Bytes(sn.head.hash[:])
	w.Int(int64(sn.head.time))
	sn.writeCounts(&w)
	w.Uint(sn.part)
	sn.writeMade(&w)
	w.B = appendSum(w.B)
	sn.part++
	sn.full = append(sn.full, w.B)
	sn.Bytes += int64(len(w.B))
}

func (sn *Snapshot) writeCounts(w *wire.Writer) {
	counted := 0
	for _, n := range sn.head.counts {
		if n > 0 {
			counted++
		}
	}
	w.Array(counted)
	for section, n := range sn.head.counts {
		if n > 0 {
			w.Array(2)
			w.Text(sectionName(section))
			w.Uint(n)
		}
	}
}

// writeMade moves what was made of the part.
func (sn *Snapshot) writeMade(w *wire.Writer) {
	filled := 0
	for i := range sn.made {
		if sn.made[i].n > 0 {
			filled++
		}
	}
	w.Array(filled)
	for section := range sn.made {
		of := &sn.made[section]
		if of.n == 0 {
			continue
		}
		w.Array(2)
		w.Text(sectionName(section))
		w.Array(of.n)
		w.B = append(w.B, of.B...)
		of.B, of.n = of.B[:0], 0
	}
	sn.bytes = 0
}

// sumBytes is the size of the sum that ends a part.
const sumBytes = 5

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendSum(b []byte) []byte {
	sum := crc32.Checksum(b, castagnoli)
	return append(b, 0xce, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}
