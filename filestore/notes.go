package filestore

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"taskledger/events"
	"taskledger/filestore/journal"
	"taskledger/store"
)

const (
	notesFormat   = "taskledger store"
	notesVersion  = 1
	defaultShards = 16
)

// notes holds what the store has to remember beside entries and the snapshots of shards: the value of its own snapshot.
type notes struct {
	Format    string             `json:"format"`
	Version   int                `json:"version"`
	ID        string             `json:"id"`
	Shards    int                `json:"shards"`
	Key       []byte             `json:"key"`
	Revisions int64              `json:"revisions"` // none above was given to a write
	Written   reads              `json:"written"`
	Of        map[int]shardNotes `json:"of"`             // by shard
	Copy      string             `json:"copy,omitempty"` // names what is being copied here
}

// reads is a store.Reads as it is stored.
type reads struct {
	Kind     uint64 `json:"kind"`
	Entry    uint64 `json:"entry"`
	Snapshot uint64 `json:"snapshot"`
	Rules    uint64 `json:"rules"`
}

func storedReads(r store.Reads) reads {
	return reads{
		Kind:     uint64(r.Kind),
		Entry:    r.Entry,
		Snapshot: r.Snapshot,
		Rules:    r.Rules,
	}
}

// told returns the store.Reads.
func (r reads) told() store.Reads {
	return store.Reads{
		Kind:     events.Kind(r.Kind),
		Entry:    r.Entry,
		Snapshot: r.Snapshot,
		Rules:    r.Rules,
	}
}

// shardNotes holds what is noted of a shard. A shard of which nothing is noted has the zero value.
type shardNotes struct {
	First   uint64  `json:"first,omitempty"`   // entries before it were trimmed
	Numbers uint64  `json:"numbers,omitempty"` // no entry above was answered, if the journaler may lose any
	Pointer pointer `json:"pointer,omitzero"`
	Loss    *loss   `json:"loss,omitempty"`
	Taking  *taking `json:"taking,omitempty"`
}

// loss is a store.Loss of the shard as it is stored.
type loss struct {
	Entry    uint64      `json:"entry"`
	Hash     events.Hash `json:"hash"`
	Reason   string      `json:"reason"`
	Revision int64       `json:"revision"`
}

// taking holds the numbers of entries that may have been answered and lost, while entries without events take them.
type taking struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Why   string `json:"why"`
}

// pointer is a store.SnapshotPointer, and where the journaler keeps the snapshots.
type pointer struct {
	Revision int64                `json:"revision"`
	Kept     []store.SnapshotInfo `json:"kept"`
	Slots    []int                `json:"slots"`
}

// held returns the number of the first entry that was not trimmed.
func (n *shardNotes) held() uint64 { return max(n.First, 1) }

// of returns what is noted of a shard.
func (n *notes) of(shard int) shardNotes { return n.Of[shard] }

// with returns notes in which those of one shard are changed.
func (n *notes) with(shard int, change func(*shardNotes)) *notes {
	next := *n
	next.Of = maps.Clone(n.Of)
	if next.Of == nil {
		next.Of = map[int]shardNotes{}
	}
	of := next.Of[shard]
	of.Pointer.Kept = slices.Clone(of.Pointer.Kept)
	of.Pointer.Slots = slices.Clone(of.Pointer.Slots)
	change(&of)
	next.Of[shard] = of
	return &next
}

var (
	// ErrShards reports that a store was created with another number of shards than was asked for.
	ErrShards = errors.New("number of shards cannot be changed")
	// ErrOtherCluster reports that a store belongs to another cluster than was expected.
	ErrOtherCluster = errors.New("another cluster")
	// ErrFormat reports a journal that this program does not read: it has another version, or holds no store.
	ErrFormat = errors.New("journal holds no store that this program reads")
)

// newNotes returns the notes of a new store.
func newNotes(shards int) (*notes, error) {
	if shards == 0 {
		shards = defaultShards
	}
	if shards < 1 || shards > store.MaxShards || shards&(shards-1) != 0 {
		problem := fmt.Sprintf("%d is no power of two up to %d", shards, store.MaxShards)
		return nil, &store.InvalidError{Field: "Shards", Problem: problem}
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return &notes{
		Format:  notesFormat,
		Version: notesVersion,
		ID:      strings.ToLower(rand.Text()),
		Shards:  shards,
		Key:     key,
	}, nil
}

// notesKey is where the journaler keeps the notes.
var notesKey = journal.Key{Shard: journal.Notes}

// readNotes returns nil where there are none.
func readNotes(j journal.Journaler) (*notes, error) {
	s, err := j.ReadSnapshot(notesKey)
	if err != nil || len(s.Parts) == 0 {
		return nil, err
	}
	n := &notes{}
	if err := json.Unmarshal(s.Parts[0], n); err != nil {
		return nil, fmt.Errorf("%w: notes of the store: %w", events.ErrDamaged, err)
	}
	if n.Format == copyingFormat {
		return nil, unfinished(n.ID, n.Copy)
	}
	if n.Format != notesFormat || n.Version != notesVersion {
		return nil, fmt.Errorf("%w: its notes are of %q, version %d, and this program reads %q, version %d",
			ErrFormat, n.Format, n.Version, notesFormat, notesVersion)
	}
	return n, nil
}

func writeNotes(j journal.Journaler, n *notes) error {
	value, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return ofJournaler(j.WriteSnapshot(notesKey, journal.Snapshot{Parts: [][]byte{value}}))
}

// note changes the notes, durably, to what change makes of the present ones; nil leaves them as they are.
func (s *Store) note(change func(*notes) *notes) error {
	s.noting.Lock()
	defer s.noting.Unlock()
	s.mu.Lock()
	now := s.notes
	s.mu.Unlock()
	next := change(now)
	if next == nil {
		return nil
	}
	if err := writeNotes(s.journal, next); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = next
	return nil
}

// noteOf is note of one shard.
func (s *Store) noteOf(shard int, change func(*shardNotes)) error {
	return s.note(func(n *notes) *notes { return n.with(shard, change) })
}

// reserve makes sure that there are revisions for a write that none was given before, whatever is lost.
func (s *Store) reserve() error {
	few := func() bool { return s.notes.Revisions-s.revision < revisionBlock/2 }
	s.mu.Lock()
	enough := !few()
	s.mu.Unlock()
	if enough {
		return nil
	}
	return s.note(func(n *notes) *notes {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !few() {
			return nil
		}
		next := *n
		next.Revisions = s.revision + revisionBlock
		return &next
	})
}
