package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"iter"
	"slices"

	"taskledger/events"
	"taskledger/store"
)

// same reports whether two stored entries are one: with the same number, revision and bytes.
func same(a, b store.Record) bool { return a.Head == b.Head && bytes.Equal(a.Data, b.Data) }

// sum stands for a sequence of stored entries, with their numbers, revisions and bytes. The zero value is that of none.
type sum struct{ of hash.Hash }

func (s *sum) add(rec store.Record) {
	if s.of == nil {
		s.of = sha256.New()
	}
	data := sha256.Sum256(rec.Data)
	head := binary.BigEndian.AppendUint64(nil, rec.Number)
	s.of.Write(append(binary.BigEndian.AppendUint64(head, uint64(rec.Revision)), data[:]...))
}

func (s *sum) equal(other *sum) bool {
	if s.of == nil || other.of == nil {
		return s.of == other.of
	}
	return bytes.Equal(s.of.Sum(nil), other.of.Sum(nil))
}

// equal reports whether the same snapshots are kept.
func equal(a, b []store.SnapshotInfo) bool { return slices.Equal(a, b) }

// decode reads an entry, and checks that it is the one that stands in its place.
func decode(shard int, rec store.Record) (*events.Entry, error) {
	e, err := events.Decode(rec.Data)
	if err == nil && (int(e.Shard) != shard || e.Number != rec.Number) {
		err = fmt.Errorf("%w: it is entry %d of shard %d", events.ErrDamaged, e.Number, e.Shard)
	}
	if err != nil {
		return nil, fmt.Errorf("entry %d of shard %d: %w", rec.Number, shard, err)
	}
	return e, nil
}

// checked yields the parts of a snapshot, and an error behind the last one where they are not those that were stored.
func checked(s store.SnapshotInfo, parts iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		sums := sha256.New()
		for part, err := range parts {
			if err == nil {
				sum := sha256.Sum256(part)
				sums.Write(sum[:])
			}
			if !yield(part, err) || err != nil {
				return
			}
		}
		if events.Hash(sums.Sum(nil)) != s.Hash {
			yield(nil, fmt.Errorf("%w: snapshot of entry %d is not as it was stored", events.ErrDamaged, s.Entry))
		}
	}
}
