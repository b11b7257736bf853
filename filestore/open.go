package filestore

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/journal"
	"taskledger/store"
)

// defaultQuota bounds a store whose Config names no quota.
const defaultQuota = 8 << 30

// Config says which store to open. The zero value works.
type Config struct {
	// Shards counts when the store is created: a power of two up to 256, default 16. Later it must be the store's, or 0.
	Shards int
	// ID is the cluster's, where it is known: another one is refused with ErrOtherCluster, and none is created.
	ID string
	// Quota bounds the bytes of entries and snapshots: near it a node takes no new tasks. Default 8 GiB.
	Quota int64
	// Beside is called, when everything was read and before anything is changed, with the cluster whose store it is: it
	// looks at what is kept beside the store, and may be another cluster's. Its error refuses the store. What it returns
	// is called once the store is there, durably, and makes that ready to be written. nil = nothing is kept beside it.
	Beside func(store.Cluster) (begin func() error, err error)
}

// New makes a store of a journaler, and creates it where that is empty. One store at a time may use a journaler. It
// wraps ErrShards, ErrOtherCluster, ErrFormat, or events.ErrDamaged. The caller closes the journaler, after the nodes
// and clients of the store have ended.
func New(j journal.Journaler, cfg Config) (*Store, error) {
	s, err := newStore(j, cfg, func() error { return nil })
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// Open opens the store in the files of a directory, which it makes where it is missing. It wraps what New and
// filejournal.Open wrap, and changes nothing of a store that it refuses. Close ends the use of the directory.
func Open(dir string, cfg Config, files filejournal.Options) (*Store, error) {
	j, err := filejournal.Look(dir, files)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := newStore(j, cfg, j.Begin)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store in %s: %w", dir, err), j.Close())
	}
	s.close, s.durable = j.Close, string(j.Durability())
	return s, nil
}

// newStore makes a store of a journaler that can be written once begin has returned.
func newStore(j journal.Journaler, cfg Config, begin func() error) (*Store, error) {
	n, err := readNotes(j)
	if err != nil {
		return nil, err
	}
	if err := checkNotes(n, cfg); err != nil {
		return nil, err
	}
	fresh := n == nil
	if fresh {
		if err := checkEmpty(j); err != nil {
			return nil, err
		}
		if n, err = newNotes(cfg.Shards); err != nil {
			return nil, err
		}
	}
	s := makeStore(j, n, cmp.Or(max(cfg.Quota, 0), defaultQuota))
	if err := s.loadAll(); err != nil {
		return nil, err
	}
	beginBeside, err := s.lookBeside(cfg, fresh)
	if err != nil {
		return nil, err
	}
	if err := begin(); err != nil {
		return nil, err
	}
	if err := s.reserve(); err != nil { // of a new store it writes the notes
		return nil, err
	}
	if err := s.recoverLost(); err != nil {
		return nil, err
	}
	// The id of a new store is lost with its notes, and another one is drawn then: what is beside it must not have it
	// before the notes are there.
	return s, beginBeside()
}

// lookBeside looks at what is kept beside the store. Of a new store, whose id was drawn just now, nothing may be there.
func (s *Store) lookBeside(cfg Config, fresh bool) (begin func() error, err error) {
	if cfg.Beside == nil {
		return func() error { return nil }, nil
	}
	begin, err = cfg.Beside(s.Cluster())
	if err != nil && fresh {
		err = fmt.Errorf("there is no store yet: %w", err)
	}
	return begin, err
}

// checkNotes refuses notes, of which there may be none, that are not those of the store which is configured.
func checkNotes(n *notes, cfg Config) error {
	switch {
	case n == nil && cfg.ID != "":
		return fmt.Errorf("%w: there is none, and that of id %s was expected", ErrOtherCluster, cfg.ID)
	case n != nil && cfg.ID != "" && cfg.ID != n.ID:
		return fmt.Errorf("%w: its id is %s, that of %s was expected", ErrOtherCluster, n.ID, cfg.ID)
	case n != nil && cfg.Shards != 0 && cfg.Shards != n.Shards:
		return fmt.Errorf("%d shards asked for, but the store was created with %d: %w", cfg.Shards, n.Shards, ErrShards)
	}
	return nil
}

// checkEmpty refuses what is kept of a store whose notes are not there: they are written before anything else.
func checkEmpty(j journal.Journaler) error {
	kept, err := anythingIn(j)
	if err == nil && kept != "" {
		err = fmt.Errorf("%w: %s is there, and no notes of the store", events.ErrDamaged, kept)
	}
	return err
}

// anythingIn names something that a journaler keeps of a shard; "" = it keeps nothing. Of a shard that was trimmed no
// entry is found from the first number on, and there need be none at all: but a snapshot says that they may go.
func anythingIn(j journal.Journaler) (what string, err error) {
	for shard := range store.MaxShards {
		for e, err := range j.Read(shard, 1) {
			return fmt.Sprintf("entry %d of shard %d", e.Number, shard), err
		}
		for slot := range journal.Slots {
			s, err := j.ReadSnapshot(journal.Key{Shard: shard, Slot: slot})
			if err != nil || s.First > 0 || len(s.Parts) > 0 {
				return fmt.Sprintf("a snapshot of shard %d", shard), err
			}
		}
	}
	return "", nil
}

// makeStore makes a store that knows its notes, and none of the entries yet.
func makeStore(j journal.Journaler, n *notes, quota int64) *Store {
	s := &Store{
		journal:  j,
		maxMail:  maxMailBytes,
		cluster:  store.Cluster{ID: n.ID, Shards: n.Shards, Key: n.Key},
		quota:    quota,
		close:    func() error { return nil },
		notes:    n,
		revision: n.Revisions,
		sessions: map[string]*session{},
		owners:   map[int]store.Owner{},
		batches:  map[box]posted{},
		answers:  map[box]posted{},
		topics:   map[topic]chan struct{}{},
	}
	if lossy, is := j.(journal.Lossy); is && lossy.MayLose() {
		s.lossy = lossy
	}
	for range n.Shards {
		s.shards = append(s.shards, &shard{parts: map[partKey][]byte{}})
	}
	return s
}

// loadAll finds the ends of the journals.
func (s *Store) loadAll() error {
	for i := range s.shards {
		if err := s.load(i); err != nil {
			return err
		}
	}
	return nil
}

// load finds the end of the journal of a shard.
func (s *Store) load(number int) error {
	at, notes := s.shards[number], s.notes.of(number)
	next := notes.held()
	for e, err := range heads(s.journal, number, next) {
		if err != nil {
			return err
		}
		if e.Number != next || e.Revision <= at.last.Revision {
			return fmt.Errorf("%w: entry %d of shard %d, of revision %d, where entry %d after revision %d is due",
				events.ErrDamaged, e.Number, number, e.Revision, next, at.last.Revision)
		}
		at.holds(store.Head{Number: e.Number, Revision: e.Revision}, e.Bytes)
		next++
	}
	if notes.First > 0 && at.last.Number == 0 {
		return fmt.Errorf("%w: entry %d of shard %d is missing, the first one that was not trimmed",
			events.ErrDamaged, notes.First, number)
	}
	s.revision = max(s.revision, at.last.Revision)
	return nil
}

// heads yields the entries of a shard without their data, which are read where the journaler does not know them.
func heads(j journal.Journaler, shard int, from uint64) iter.Seq2[journal.Head, error] {
	return func(yield func(journal.Head, error) bool) {
		if of, is := j.(journal.Surveyed); is {
			if all, known := of.Heads(shard, from); known {
				for h := range all {
					if !yield(h, nil) {
						return
					}
				}
				return
			}
		}
		for e, err := range j.Read(shard, from) {
			h := journal.Head{Number: e.Number, Revision: e.Revision, Bytes: len(e.Data)}
			if !yield(h, err) {
				return
			}
		}
	}
}

// recoverLost gives up the ends of the journals where the journaler may have lost entries that were answered. Entries
// without events take the numbers that may have been answered, so that none of them is used for anything else. What is
// to be done is noted first, so that it is done to the end whatever stops it.
func (s *Store) recoverLost() error {
	if s.lossy != nil {
		if why := s.lossy.Lost(); why != "" {
			if err := s.note(func(n *notes) *notes { return s.taking(n, why) }); err != nil {
				return err
			}
			if err := ofJournaler(s.lossy.Told()); err != nil {
				return err
			}
		}
	}
	for i := range s.shards {
		if t := s.notes.of(i).Taking; t != nil {
			if err := s.takeNumbers(i, t); err != nil {
				return fmt.Errorf("take the numbers of entries of shard %d that may be lost: %w", i, err)
			}
		}
	}
	return nil
}

// taking notes which numbers may have been answered and lost.
func (s *Store) taking(n *notes, why string) *notes {
	for i, at := range s.shards {
		of := n.of(i)
		if of.Taking == nil && at.last.Number < of.Numbers {
			n = n.with(i, func(of *shardNotes) { of.Taking = &taking{at.last.Number + 1, of.Numbers, why} })
		}
	}
	return n
}

// takeNumbers takes numbers that may have been answered, and leaves the loss to the next owner of the shard.
func (s *Store) takeNumbers(shard int, t *taking) error {
	hash, err := s.fill(shard, s.shards[shard], t.Last)
	if err != nil {
		return err
	}
	loss := s.revised(store.Loss{
		Shard:  shard,
		Entry:  t.Last,
		Hash:   hash,
		Reason: t.reason(s.loss(shard)),
	})
	return s.noteOf(shard, func(n *shardNotes) { n.Loss, n.Taking = loss, nil })
}

// tookNumbers is the reason of a loss whose numbers were taken: why, which they are, and the last one.
var tookNumbers = regexp.MustCompile(`(?s)^(.*)(: entries [0-9]+ to )([0-9]+)$`)

// reason tells which numbers are taken and why, and goes on with what a loss before tells that no owner has recorded
// durably: the entry of an owner that did takes one of these numbers, and is lost with them.
func (t *taking) reason(before store.Loss) string {
	reason := fmt.Sprintf("%s: entries %d to %d", t.Why, t.First, t.Last)
	if before.Revision == 0 || before.Entry+1 != t.First {
		return reason
	}
	took := tookNumbers.FindStringSubmatch(before.Reason)
	if took != nil && took[3] == fmt.Sprint(before.Entry) {
		return joinReasons(took[1], fmt.Sprint(took[2], t.Last))
	}
	return joinReasons(before.Reason, "; "+reason)
}

// joinReasons returns one reason followed by another, and cuts the first one where both are too long.
func joinReasons(first, then string) string {
	most := max(events.MaxNameBytes-len(then), 0)
	return strings.ToValidUTF8(first[:min(len(first), most)], "") + then
}

// filler is the sender of the batches in entries that take numbers: an entry has an event or a batch.
const filler = "taken-numbers"

// fill appends entries without events up to a number, and returns the chain hash of the last one.
func (s *Store) fill(number int, at *shard, until uint64) (hash events.Hash, err error) {
	before := &events.Entry{Epoch: 1, Owner: "none", Time: events.Millis(time.Now().UnixMilli())}
	if at.last.Number > 0 {
		last, err := s.entry(number, at.last.Number)
		if err == nil {
			before, err = events.Decode(last.Data)
		}
		if err != nil {
			return hash, err
		}
	}
	var b events.Builder
	for at.last.Number < until {
		b.Reset(events.Entry{
			Shard:  uint16(number),
			Number: at.last.Number + 1,
			Epoch:  before.Epoch,
			Owner:  before.Owner,
			Time:   before.Time,
			Prev:   before.Hash,
		})
		b.AddOrigin(events.Origin{Sender: filler, Number: at.last.Number + 1})
		data, err := b.Seal()
		if err != nil {
			return hash, err
		}
		if _, err := s.put(number, at, at.last.Number+1, data); err != nil {
			return hash, err
		}
		if before, err = events.Decode(data); err != nil {
			return hash, err
		}
	}
	return before.Hash, nil
}
