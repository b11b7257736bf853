// Package repair finds keys in the store that are not where they belong, and removes those that can be removed without
// loss. Most of all it is for what is stored behind the last sound entry of a journal, and so keeps its shard from
// being served.
//
// An entry is sound if it decodes, carries its own number and shard, and continues the hash chain. What is stored
// behind the last sound entry may stop the shard, since no owner appends past it. It is removed only if it is not an
// entry that belongs there and nothing shows that one was there. Whatever may be an entry stays, and its Stray says
// what has to be restored.
package repair

import (
	"context"
	"errors"
	"fmt"
	"math"

	"taskledger/events"
	"taskledger/ledger"
	"taskledger/store"
)

// Stray is a key of the cluster that is not where it belongs.
type Stray struct {
	Key      string `json:"key"`
	Shard    int    `json:"shard"` // -1: the key belongs to no shard of the cluster, and is ignored
	Entry    uint64 `json:"entry,omitempty"`
	Revision int64  `json:"revision"` // etcd revision of its last write
	Bytes    int    `json:"bytes"`
	Problem  string `json:"problem"`
	Keep     string `json:"keep,omitempty"` // why it cannot be removed without loss; "" = it can
	Removed  bool   `json:"removed"`
	GivenUp  bool   `json:"givenUp,omitempty"` // what followed Entry is given up: the next owner of the shard records that

	sound  sound // end of the journal, where Entry is the one after it
	served bool  // by a node that lives
}

// Options say what a repair does beside looking.
type Options struct {
	Remove   bool // remove what can be removed without loss
	Restored bool // give up what is missing at the ends of the journals: see Journals.Repair
}

// mostStrays bounds the keys of a shard that are shown when none can be removed.
const mostStrays = 10

// tries bounds the reads of a shard's journal that begin again because it was trimmed meanwhile.
const tries = 5

// Journals reads the journals of the shards and removes stray keys from them.
type Journals struct {
	Shards    int // of the cluster
	Journal   ledger.Journal
	Snapshots ledger.Snapshots
	Repairer  store.Repairer
	Losses    store.Losses
	Members   Members
	Archive   store.Archiver // nil = none
	// ForgetLogs removes the logs of all tasks of a shard; nil = there are none.
	ForgetLogs func(ctx context.Context, shard int) error
}

// Members tells which nodes live and which shards they own.
type Members interface {
	ReadMembers(ctx context.Context) (store.Membership, error)
}

// Repair finds keys that are not where they belong: those that are stored behind the last sound entry of a shard's
// journal, node keys without a lease, and keys of shards that the cluster does not have. It reads each journal from its
// first entry on, and can be called while nodes run.
//
// With Options.Remove it removes those node keys, and those keys of a journal that are no entry: they cannot be read,
// belong elsewhere, or do not follow the entry before, and nothing shows that an entry was there. A committed last
// entry whose stored bytes have rotted since looks the same if no snapshot covers it: it is removed as well, and what
// it recorded is lost. So what stood in the place of the next entry is given up: the next owner of the shard records
// events.Recovered, and uses no id again that an item may have had. A key is removed only if it has not changed since
// it was judged. A shard that was quarantined because of such keys is served again within seconds.
//
// With Options.Restored, after the store was restored from a backup, what followed the end of each journal is given
// up in the same way: of every shard that has no owner, and of those of which a snapshot or the archive goes beyond
// the end, which are quarantined until then: Repair waits until they are not, 20 s at most. Each is a Stray without a
// key. The logs of the tasks of such a shard are removed: they are kept by numbers of its entries, which other tasks
// get now. Where that fails, the Problem of the Stray says so.
func (r Journals) Repair(ctx context.Context, o Options) (all []Stray, err error) {
	report := func(s Stray) error {
		if o.Remove && s.Keep == "" {
			if err := r.remove(ctx, &s); err != nil {
				return err
			}
		}
		all = append(all, s)
		return nil
	}
	for shard := range r.Shards {
		strays, err := r.Strays(ctx, shard)
		if err != nil {
			return all, fmt.Errorf("repair shard %d: %w", shard, err)
		}
		for _, s := range strays {
			if err := report(s); err != nil {
				return all, fmt.Errorf("repair shard %d: %w", shard, err)
			}
		}
	}
	if o.Restored {
		given, err := r.giveUp(ctx)
		all = append(all, given...)
		if err != nil {
			return all, err
		}
	}
	for k, err := range r.Repairer.Leaseless(ctx) {
		if err == nil {
			err = report(
				Stray{
					Key:      k.Key,
					Shard:    -1,
					Revision: k.Revision,
					Bytes:    len(k.Data),
					Problem:  "it has no lease, so it is no node's",
				},
			)
		}
		if err != nil {
			return all, fmt.Errorf("repair: %w", err)
		}
	}
	for k, err := range r.Repairer.Foreign(ctx) {
		if err != nil {
			return all, fmt.Errorf("repair: %w", err)
		}
		all = append(all, Stray{Key: k.Key, Shard: -1, Revision: k.Revision, Keep: "it is ignored",
			Problem: fmt.Sprintf("it is of no shard: the cluster has %d, from 0 on", r.Shards)})
	}
	return all, nil
}

// remove removes a key. What may have been an entry is given up before: whoever stops between the two has lost nothing.
func (r Journals) remove(ctx context.Context, s *Stray) error {
	if s.Shard >= 0 && s.Entry != 0 && s.Entry == s.sound.last+1 {
		s.GivenUp = true
		err := r.Losses.GiveUp(
			ctx,
			store.Loss{
				Shard:  s.Shard,
				Entry:  s.sound.last,
				Hash:   s.sound.hash,
				Reason: "repair removed what was stored as the next entry",
			},
		)
		if err != nil {
			return err
		}
	}
	s.Removed = true
	return r.Repairer.Remove(ctx, store.StoredKey{Key: s.Key, Revision: s.Revision})
}

// Strays finds what is stored behind the last sound entry of a shard.
func (r Journals) Strays(ctx context.Context, shard int) ([]Stray, error) {
	for try := 0; ; try++ {
		covered, err := r.covered(ctx, shard)
		if err != nil {
			return nil, err
		}
		j := judge{shard: shard}
		if j.sound, err = r.sound(ctx, shard); err != nil {
			return nil, err
		}
		if covered > j.last {
			j.keep = fmt.Sprintf("entries up to %d are missing or damaged: restore them", covered)
		}
		for k, err := range r.Repairer.Behind(ctx, shard, j.last) {
			if err != nil {
				return nil, err
			}
			if j.consider(k); j.keep != "" && len(j.found) == mostStrays {
				break
			}
		}
		if j.keep == "" || try == tries {
			return j.verdict(), nil
		}
		// What seems to be missing may have been trimmed since.
		if first, err := r.Journal.First(ctx, shard); err != nil || first <= j.last+1 {
			return j.verdict(), nil
		}
	}
}

// covered returns the number of the entry that the newest snapshot is of. All entries up to it were committed.
func (r Journals) covered(ctx context.Context, shard int) (uint64, error) {
	p, err := r.Snapshots.Pointer(ctx, shard)
	switch {
	case errors.Is(err, events.ErrDamaged):
		return math.MaxUint64, nil
	case err != nil:
		return 0, fmt.Errorf("snapshot pointer of shard %d: %w", shard, err)
	case len(p.Kept) == 0:
		return 0, nil
	}
	return p.Kept[0].Entry, nil
}

// sound is the end of the sound part of a journal.
type sound struct {
	last  uint64
	hash  events.Hash // of the last entry
	blank bool        // no entry was there: its hash is not known
}

// follows reports whether an entry follows the last one. If so, it becomes the last one.
func (s *sound) follows(e *events.Entry, shard int) bool {
	if e.Number != s.last+1 || int(e.Shard) != shard || !s.blank && e.Prev != s.hash {
		return false
	}
	*s = sound{last: e.Number, hash: e.Hash}
	return true
}

// sound reads the journal up to the last entry that follows the one before.
func (r Journals) sound(ctx context.Context, shard int) (s sound, err error) {
	p, err := r.Snapshots.Pointer(ctx, shard)
	if err != nil && !errors.Is(err, events.ErrDamaged) {
		return s, err
	}
	if p.Revision != 0 { // what is before may have been trimmed
		first, err := r.Journal.First(ctx, shard)
		if err != nil {
			return s, err
		}
		if first > 1 {
			s = sound{last: first - 1, blank: true}
		}
	}
	follows := func(rec store.Record) bool {
		e, err := events.Decode(rec.Data)
		return err == nil && s.follows(e, shard)
	}
	damaged := false
	for rec, err := range r.Journal.Read(ctx, shard, s.last+1) {
		if damaged = err != nil; damaged { // somewhere in the page
			break
		}
		if !follows(rec) {
			return s, nil
		}
	}
	for damaged {
		rec, err := r.Journal.Entry(ctx, shard, s.last+1)
		switch {
		case errors.Is(err, store.ErrTrimmed):
			return s, nil
		case err != nil:
			return s, err
		case !follows(rec):
			return s, nil
		}
	}
	return s, nil
}

// KeepReplaced is the Keep of a Stray that may have taken the place of an entry.
const KeepReplaced = "it was written over, perhaps an entry: restore that"

// judge decides about the keys that are stored behind an entry.
type judge struct {
	sound
	shard int
	keep  string // why nothing under the number of an entry can be removed
	found []Stray
}

func (j *judge) consider(k store.StoredKey) {
	s := Stray{Key: k.Key, Shard: j.shard, Entry: k.Entry, Revision: k.Revision, Bytes: len(k.Data)}
	e, err := events.Decode(k.Data)
	switch {
	case k.Entry == 0:
		s.Problem = "no entry can have this key"
	case err != nil && ofAnotherRelease(k.Data, err):
		s.Problem = fmt.Sprintf("this program cannot read it: %v", err)
		j.keep = fmt.Sprintf("entry %d may be of another release: use the program that wrote it", k.Entry)
	case err != nil:
		s.Problem = fmt.Sprintf("it is no entry: %v", err)
	case e.Number != k.Entry || int(e.Shard) != j.shard:
		s.Problem = fmt.Sprintf("it is entry %d of shard %d", e.Number, e.Shard)
	case j.follows(e, j.shard): // it has been written since
		return
	case e.Number == j.last+1:
		s.Problem = fmt.Sprintf("it does not follow entry %d", j.last)
	default: // the damage is before it
		s.Problem = fmt.Sprintf("entry %d is missing or damaged", j.last+1)
		j.keep = fmt.Sprintf("it may be an entry, since entry %d is there: restore entry %d", k.Entry, j.last+1)
	}
	if k.Entry != 0 && k.Replaced {
		s.Keep = KeepReplaced
	}
	s.sound = j.sound
	j.found = append(j.found, s)
}

// ofAnotherRelease reports whether data that cannot be decoded may be an entry nevertheless: its version is unknown, or
// it is whole and something in it is unknown.
func ofAnotherRelease(data []byte, err error) bool {
	_, damaged := events.Survey(data, func([]byte) {})
	return errors.Is(err, events.ErrVersion) || damaged == nil
}

func (j *judge) verdict() []Stray {
	for i := range j.found {
		if s := &j.found[i]; s.Entry != 0 && j.keep != "" {
			s.Keep = j.keep
		}
	}
	return j.found
}
