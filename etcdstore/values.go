package etcdstore

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
)

// maxValueBytes bounds what is decoded: more is in no request.
const maxValueBytes = 1536 << 10

// keyBytes is the length of a cluster's key.
const keyBytes = 32

// maxParts exceeds the parts of any snapshot that an etcd can hold, and fits the digits of a key.
const maxParts = 1 << 20

// version is the first element of every value that this package encodes, but of the one that describes the cluster.
const version = 1

// metaVersion is the first element of the value that describes the cluster. It rises when what is stored below the
// cluster's name can no longer be read, so that a cluster of before is refused whole when a process connects.
const metaVersion = 2

// copiedMetaVersion is metaVersion of a cluster that was copied here from another store: one that does not know of its
// base would give revisions and epochs anew.
const copiedMetaVersion = 3

// meta holds the properties of a cluster that never change.
type meta struct {
	shards  int
	id      string
	key     []byte
	base    int64 // added to every revision of etcd; 0 = the cluster was created here
	created int64 // revision of etcd at which its key was created; it is not stored in it
}

// versionError is a value of a version that this program does not read.
type versionError struct{ is, want uint64 }

func (e *versionError) Error() string {
	return fmt.Sprintf("format version %d, this release knows %d", e.is, e.want)
}

func record(elements int) *wire.Writer {
	return recordOf(version, elements)
}

func recordOf(version uint64, elements int) *wire.Writer {
	w := new(wire.Writer)
	w.Array(1 + elements)
	w.Uint(version)
	return w
}

// fields opens a value of at least the given number of elements after its version. More are left unread: a later
// release may append some.
func fields(b []byte, elements int) (*wire.Reader, error) {
	return fieldsOf(version, b, elements)
}

func fieldsOf(version uint64, b []byte, elements int) (*wire.Reader, error) {
	if len(b) > maxValueBytes {
		return nil, fmt.Errorf("%w: %d bytes exceed the limit of %d", wire.ErrMalformed, len(b), maxValueBytes)
	}
	if err := wire.Scan(b); err != nil {
		return nil, err
	}
	r := wire.NewReader(b)
	n, v := r.Array(), r.Uint()
	switch {
	case r.Err() != nil:
		return nil, r.Err()
	case v != version:
		return nil, &versionError{is: v, want: version}
	case n < 1+elements:
		return nil, fmt.Errorf("%w: %d elements, want %d", wire.ErrMalformed, n, 1+elements)
	}
	return r, nil
}

func encodeMeta(m meta) []byte {
	version, elements := uint64(metaVersion), 3
	if m.base != 0 {
		version, elements = copiedMetaVersion, 4
	}
	w := recordOf(version, elements)
	w.Uint(uint64(m.shards))
	w.Text(m.id)
	w.Bytes(m.key)
	if m.base != 0 {
		w.Int(m.base)
	}
	return w.B
}

func decodeMeta(b []byte) (m meta, err error) {
	r, err := fieldsOf(metaVersion, b, 3)
	is := new(versionError)
	copied := errors.As(err, &is) && is.is == copiedMetaVersion
	if copied {
		r, err = fieldsOf(copiedMetaVersion, b, 4)
	}
	if errors.As(err, &is) && is.is < is.want {
		return m, fmt.Errorf("%w: it was created by a release before this one, whose stored forms this one does not read: "+
			"use that release, or create the cluster anew", err)
	}
	if err != nil {
		return m, err
	}
	m = meta{shards: int(r.Uint()), id: r.Text(), key: r.Bytes()}
	if copied {
		if m.base = r.Int(); m.base <= 0 || m.base > maxBase {
			r.Fail("base %d of revisions", m.base)
		}
	}
	if r.Err() == nil && (!validShards(m.shards) || len(m.key) != keyBytes) {
		return m, fmt.Errorf("%w: %d shards, key of %d bytes", wire.ErrMalformed, m.shards, len(m.key))
	}
	return m, r.Err()
}

// encodeNode makes the value of a node key. Limits are an eleventh element, of nodes that have some or tell what
// they read; that is a twelfth.
func encodeNode(n store.NodeInfo) []byte {
	elements, tells := 10, n.Reads != store.Reads{}
	switch {
	case tells:
		elements += 2
	case len(n.Limits) > 0:
		elements++
	}
	w := record(elements)
	w.Text(n.Name)
	w.Text(n.Version)
	w.Text("") // reserved
	w.Array(len(n.Behaviors))
	for _, b := range n.Behaviors {
		w.Text(b)
	}
	w.Text(n.Types)
	w.Int(int64(n.Slots))
	w.Bool(n.Owner)
	w.Bool(n.Draining)
	w.Int(n.Joined)
	w.Bytes(n.Load)
	if elements > 10 {
		encodeLimits(w, n.Limits)
	}
	if tells {
		encodeReads(w, n.Reads)
	}
	return w.B
}

func encodeLimits(w *wire.Writer, limits map[string]int) {
	w.Array(len(limits))
	for _, behavior := range slices.Sorted(maps.Keys(limits)) {
		w.Array(2)
		w.Text(behavior)
		w.Int(int64(limits[behavior]))
	}
}

func decodeNode(b []byte) (n store.NodeInfo, err error) {
	r, err := fields(b, 10)
	if err != nil {
		return n, err
	}
	n.Name, n.Version = r.Text(), r.Text()
	r.TextView() // reserved
	if runs := r.Array(); runs > 0 {
		n.Behaviors = make([]string, runs)
	}
	for i := range n.Behaviors {
		n.Behaviors[i] = r.Text()
	}
	n.Types, n.Slots = r.Text(), int(r.Int())
	n.Owner, n.Draining = r.Bool(), r.Bool()
	n.Joined, n.Load = r.Int(), r.Bytes()
	if !r.More() {
		return n, r.Err()
	}
	limits := r.Array()
	if limits > 0 {
		n.Limits = make(map[string]int)
	}
	for range limits {
		r.ArrayOf(2)
		behavior := r.Text()
		n.Limits[behavior] = int(r.Int())
	}
	if r.More() {
		n.Reads = decodeReads(r)
	}
	return n, r.Err()
}

func encodeReads(w *wire.Writer, v store.Reads) {
	w.Array(4)
	w.Uint(uint64(v.Kind))
	w.Uint(v.Entry)
	w.Uint(v.Snapshot)
	w.Uint(v.Rules)
}

// decodeReads reads what encodeReads wrote. A later release may have appended elements: what a program reads of
// things that this one does not know is of no use here.
func decodeReads(r *wire.Reader) (v store.Reads) {
	n := r.Array()
	if n < 4 {
		r.Fail("what a program reads has %d elements, want 4", n)
		return v
	}
	kind := r.Uint()
	if kind > math.MaxUint8 {
		r.Fail("kind %d of event", kind)
	}
	v = store.Reads{Kind: events.Kind(kind), Entry: r.Uint(), Snapshot: r.Uint(), Rules: r.Uint()}
	r.Skip(n - 4)
	return v
}

func encodeWritten(v store.Reads) []byte {
	w := record(1)
	encodeReads(w, v)
	return w.B
}

func decodeWritten(b []byte) (v store.Reads, err error) {
	r, err := fields(b, 1)
	if err != nil {
		return v, err
	}
	v = decodeReads(r)
	return v, r.Err()
}

func encodeOwner(session string) []byte {
	w := record(1)
	w.Text(session)
	return w.B
}

func decodeOwner(b []byte) (session string, err error) {
	r, err := fields(b, 1)
	if err != nil {
		return "", err
	}
	session = r.Text()
	return session, r.Err()
}

// encodeLoss makes the value of the key by which a loss is left to the next owner.
func encodeLoss(l store.Loss) []byte {
	w := record(3)
	w.Uint(l.Entry)
	w.Bytes(l.Hash[:])
	w.Text(l.Reason)
	return w.B
}

func decodeLoss(b []byte) (l store.Loss, err error) {
	r, err := fields(b, 3)
	if err != nil {
		return l, err
	}
	l.Entry = r.Uint()
	l.Hash = readHash(r)
	l.Reason = r.Text()
	if r.Err() == nil && events.CheckReason(l.Reason) != nil {
		r.Fail("reason of %d bytes", len(l.Reason))
	}
	return l, r.Err()
}

// encodePointer makes the value of a snapshot pointer.
func encodePointer(kept []store.SnapshotInfo) []byte {
	w := record(1)
	w.Array(len(kept))
	for _, s := range kept {
		w.Array(5)
		w.Uint(s.Entry)
		w.Int(s.Epoch)
		w.Uint(uint64(s.Parts))
		w.Int(s.Bytes)
		w.Bytes(s.Hash[:])
	}
	return w.B
}

// decodePointer returns the snapshots that are kept, newest first: one or two.
func decodePointer(b []byte) (kept []store.SnapshotInfo, err error) {
	r, err := fields(b, 1)
	if err != nil {
		return nil, err
	}
	for range r.Array() {
		var s store.SnapshotInfo
		if r.ArrayOf(5); r.Err() != nil || len(kept) == 2 {
			r.Fail("more than two snapshots")
			break
		}
		s.Entry, s.Epoch = r.Uint(), r.Int()
		s.Parts, s.Bytes = int(r.Uint()), r.Int()
		s.Hash = readHash(r)
		kept = append(kept, s)
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	if err := checkKept(kept); err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	return kept, nil
}

// readHash reads a chain hash.
func readHash(r *wire.Reader) (h events.Hash) {
	b := r.View()
	if copy(h[:], b); len(b) != len(h) {
		r.Fail("hash of %d bytes", len(b))
	}
	return h
}

// checkKept returns an error unless these can be the snapshots that a pointer names.
func checkKept(kept []store.SnapshotInfo) error {
	if n := len(kept); n < 1 || n > 2 {
		return fmt.Errorf("pointer to %d snapshots", n)
	}
	for _, s := range kept {
		if s.Entry == 0 || s.Epoch <= 0 || s.Parts < 1 || s.Parts > maxParts || s.Bytes < 0 {
			return fmt.Errorf("snapshot of entry %d in epoch %d, %d parts, %d bytes", s.Entry, s.Epoch, s.Parts, s.Bytes)
		}
	}
	newest, older := kept[0], oldest(kept)
	if newest.Entry < older.Entry || newest.Epoch < older.Epoch ||
		len(kept) == 2 && newest.Entry == older.Entry && newest.Epoch == older.Epoch {
		return fmt.Errorf("snapshot of entry %d in epoch %d is not newer than %d in %d",
			newest.Entry, newest.Epoch, older.Entry, older.Epoch)
	}
	return nil
}

// oldest returns the snapshot from whose entry on the journal is complete.
func oldest(kept []store.SnapshotInfo) store.SnapshotInfo { return kept[len(kept)-1] }

// encodeMailboxValue makes the value of a mailbox or answer key.
func encodeMailboxValue(data []byte) []byte {
	w := record(1)
	w.Bytes(data)
	return w.B
}

func decodeMailboxValue(b []byte) (data []byte, err error) {
	r, err := fields(b, 1)
	if err != nil {
		return nil, err
	}
	data = r.Bytes()
	return data, r.Err()
}
