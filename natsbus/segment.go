package natsbus

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
)

// The headers of a segment.
const (
	firstHeader  = "Taskledger-First"
	beginsHeader = "Taskledger-Begins" // store.ArchiveHead.Begins; not there where that is 0
	lastHeader   = "Taskledger-Last"
	tasksHeader  = "Taskledger-Tasks"
)

const (
	// segmentVersion is the first value of a segment's body.
	segmentVersion = 1
	// maxBody bounds what the body of a message may grow to: entries of store.MaxSegmentBytes, or a single one of
	// events.MaxEntryBytes, with what stands around them.
	maxBody = 2 << 20
)

// segment is consecutive entries of a shard as one message keeps them. doc.go describes its form.
type segment struct {
	span
	begins uint64 // sequence after which the archive began anew; 0 = it never did
	tasks  string // the filter
	body   []byte // not compressed
}

// span is the entries of a segment, as its headers tell.
type span struct{ first, last uint64 }

// newSegment encodes entries, of which there is at least one. It wraps store.ErrConflict when they are not
// consecutive, and events.ErrDamaged when one is none of the shard's.
func newSegment(shard int, entries []store.Record) (*segment, error) {
	tasks := map[events.TaskID]struct{}{}
	for i, rec := range entries {
		if want := entries[0].Number + uint64(i); rec.Number != want {
			return nil, fmt.Errorf("%w: entry %d where %d is due", store.ErrConflict, rec.Number, want)
		}
		e, err := events.Survey(rec.Data, func(task []byte) {
			if _, seen := tasks[events.TaskID(task)]; !seen {
				tasks[events.TaskID(task)] = struct{}{}
			}
		})
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", rec.Number, err)
		}
		if int(e.Shard) != shard || e.Number != rec.Number {
			return nil, fmt.Errorf("%w: entry %d of shard %d stands as entry %d",
				events.ErrDamaged, e.Number, e.Shard, rec.Number)
		}
	}
	return &segment{
		span:  span{entries[0].Number, entries[len(entries)-1].Number},
		tasks: newFilter(tasks).String(),
		body:  pack(shard, entries),
	}, nil
}

// pack is the body of a segment.
func pack(shard int, entries []store.Record) []byte {
	size := 0
	for i := range entries {
		size += len(entries[i].Data) + 32
	}
	w := wire.Writer{B: make([]byte, 0, size+16)}
	w.Array(3)
	w.Uint(segmentVersion)
	w.Uint(uint64(shard))
	w.Array(len(entries))
	for _, rec := range entries {
		w.Array(3)
		w.Uint(rec.Number)
		w.Int(rec.Revision)
		w.Bytes(rec.Data)
	}
	return w.B
}

// message is the segment on its way to the archive.
func (s *segment) message(subject string) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: s2.Encode(nil, s.body), Header: nats.Header{
		firstHeader: {strconv.FormatUint(s.first, 10)},
		lastHeader:  {strconv.FormatUint(s.last, 10)},
		tasksHeader: {s.tasks},
	}}
	if s.begins > 0 {
		m.Header.Set(beginsHeader, strconv.FormatUint(s.begins, 10))
	}
	return m
}

// readBegins returns the sequence after which the archive began anew, as a segment tells; 0 = it never did. It
// wraps events.ErrDamaged.
func readBegins(m *stored) (uint64, error) {
	text := m.header.Get(beginsHeader)
	if text == "" {
		return 0, nil
	}
	begins, err := strconv.ParseUint(text, 10, 64)
	if err == nil && begins >= m.sequence {
		err = fmt.Errorf("%d in segment %d", begins, m.sequence)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: header %s: %w", events.ErrDamaged, beginsHeader, err)
	}
	return begins, nil
}

// same reports whether m is the segment. Its bytes may differ: compressors do.
func (s *segment) same(m *stored) bool {
	at, err := readSpan(m.header)
	begins, unread := readBegins(m)
	if err != nil || unread != nil || at != s.span || begins != s.begins || m.header.Get(tasksHeader) != s.tasks {
		return false
	}
	body, err := unpack(m.data)
	return err == nil && bytes.Equal(body, s.body)
}

// unpack returns the body of a message.
func unpack(data []byte) ([]byte, error) {
	n, err := s2.DecodedLen(data)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if n > maxBody {
		return nil, fmt.Errorf("decompressed it has %d bytes, want %d at most", n, maxBody)
	}
	body, err := s2.Decode(nil, data)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return body, nil
}

// readSpan wraps events.ErrDamaged.
func readSpan(h nats.Header) (span, error) {
	first, err := strconv.ParseUint(h.Get(firstHeader), 10, 64)
	if err != nil {
		return span{}, fmt.Errorf("%w: header %s: %w", events.ErrDamaged, firstHeader, err)
	}
	last, err := strconv.ParseUint(h.Get(lastHeader), 10, 64)
	if err != nil {
		return span{}, fmt.Errorf("%w: header %s: %w", events.ErrDamaged, lastHeader, err)
	}
	if first == 0 || last < first {
		return span{}, fmt.Errorf("%w: headers name entries %d to %d", events.ErrDamaged, first, last)
	}
	return span{first, last}, nil
}

// decodeSegment returns the entries in m, in memory of their own. It wraps events.ErrDamaged when m is no segment
// of the shard, and store.ErrTrimmed, too, when an entry is missing; the entries before the damage are returned all
// the same. What is inside the entries is not looked at.
func decodeSegment(shard int, m *stored) ([]store.Record, error) {
	at, err := readSpan(m.header)
	if err != nil {
		return nil, damaged(shard, m, err)
	}
	entries, err := decodeBody(shard, at, m.data)
	if err != nil {
		return entries, damaged(shard, m, fmt.Errorf("of entries %d to %d: %w", at.first, at.last, err))
	}
	return entries, nil
}

func decodeBody(shard int, at span, data []byte) (entries []store.Record, err error) {
	body, err := unpack(data)
	if err == nil {
		err = wire.Scan(body)
	}
	if err != nil {
		return nil, err
	}
	r := wire.NewReader(body)
	r.ArrayOf(3)
	if v := r.Uint(); v != segmentVersion {
		r.Fail("segment version %d", v)
	}
	if of := r.Uint(); of != uint64(shard) {
		r.Fail("it is of shard %d", of)
	}
	n := min(r.Array(), len(body)/4) // an entry takes 4 bytes at least
	entries = make([]store.Record, 0, n)
	for i := range n {
		rec, due := decodeRecord(r), at.first+uint64(i)
		switch {
		case r.Err() != nil:
			return entries, r.Err()
		case due > at.last:
			return entries, fmt.Errorf("entry %d is none of them", rec.Number)
		case rec.Number != due:
			return entries, misplaced(r, rec.Number, due, n-i-1)
		}
		entries = append(entries, rec)
	}
	if err := r.Close(); err != nil {
		return entries, err
	}
	if due := at.first + uint64(n); due <= at.last {
		return entries, fmt.Errorf("entry %d is not there: %w", due, store.ErrTrimmed)
	}
	return entries, nil
}

func decodeRecord(r *wire.Reader) store.Record {
	r.ArrayOf(3)
	return store.Record{Head: store.Head{Number: r.Uint(), Revision: r.Int()}, Data: r.Bytes()}
}

// misplaced says what an entry does where another is due: that one is missing, unless it is among those left.
func misplaced(r *wire.Reader, number, due uint64, left int) error {
	for range left {
		if decodeRecord(r).Number == due {
			return fmt.Errorf("entry %d stands where %d is due, which stands behind it", number, due)
		}
	}
	return fmt.Errorf("entry %d stands where %d is due: %w", number, due, store.ErrTrimmed)
}

// damaged says which segment cannot be read, and wraps events.ErrDamaged and err.
func damaged(shard int, m *stored, err error) error {
	return fmt.Errorf("segment %d in the archive of shard %d: %w: %w", m.sequence, shard, events.ErrDamaged, err)
}
