package engine

import (
	"context"
	"errors"
	"fmt"
	"math"

	"taskledger/events"
)

// Stray is a key of the cluster that is not where it belongs.
type Stray struct {
	Key      string `json:"key"`
	Shard    int    `json:"shard"` // -1: the key is of no shard of the cluster, and ignored
	Entry    uint64 `json:"entry,omitempty"`
	Revision int64  `json:"revision"` // etcd revision of its last write
	Bytes    int    `json:"bytes"`
	Problem  string `json:"problem"`
	Keep     string `json:"keep,omitempty"` // why it cannot be removed without loss; "" = it can
	Removed  bool   `json:"removed"`
}

// mostStrays is how many keys of a shard are shown when none can be removed.
const mostStrays = 10

// repairTries is how often the journal of a shard is read again because it has grown meanwhile.
const repairTries = 5

// Repair finds keys that are not where they belong: what is stored behind the last sound entry of a shard's journal, and keys
// of shards that the cluster does not have. With remove it removes those that are no entry for certain: what cannot be
// read, is of another place, or does not follow the entry before, while nothing shows that an entry was there. Each is
// removed only as it was judged. A shard that was quarantined for them is served again within seconds. Repair reads the journals
// from the first entry that is held on, and can be called while nodes run. It needs a Store.
func (c *Client) Repair(ctx context.Context, remove bool) (all []Stray, err error) {
	r, err := c.records()
	if err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	for shard := range c.cfg.Shards {
		strays, err := r.strays(ctx, shard)
		if err != nil {
			return all, fmt.Errorf("repair shard %d: %w", shard, err)
		}
		for _, s := range strays {
			if remove && s.Keep == "" {
				if err := r.store.Remove(ctx, StoredKey{Key: s.Key, Revision: s.Revision}); err != nil {
					return all, fmt.Errorf("repair shard %d: %w", shard, err)
				}
				s.Removed = true
			}
			all = append(all, s)
		}
	}
	for k, err := range r.store.Foreign(ctx) {
		if err != nil {
			return all, fmt.Errorf("repair: %w", err)
		}
		all = append(all, Stray{Key: k.Key, Shard: -1, Revision: k.Revision, Keep: "it is ignored",
			Problem: fmt.Sprintf("it is of no shard: the cluster has %d, from 0 on", c.cfg.Shards)})
	}
	return all, nil
}

// strays finds what is stored behind the last sound entry of a shard.
func (r records) strays(ctx context.Context, shard int) ([]Stray, error) {
	for try := 0; ; try++ {
		last, hash, err := r.sound(ctx, shard)
		if err != nil {
			return nil, err
		}
		covered, err := r.covered(ctx, shard)
		if err != nil {
			return nil, err
		}
		j := judge{shard: shard, last: last, hash: hash}
		if covered > last {
			j.keep = fmt.Sprintf("entries up to %d are missing or damaged: restore them", covered)
		}
		for k, err := range r.store.Behind(ctx, shard, last) {
			if err != nil {
				return nil, err
			}
			if j.look(k); j.keep != "" && len(j.found) == mostStrays {
				break
			}
		}
		if !j.grown || try == repairTries {
			return j.verdict(), nil
		}
	}
}

// covered returns the entry of the newest snapshot, all up to which were committed.
func (r records) covered(ctx context.Context, shard int) (uint64, error) {
	kept, err := r.snapshots(ctx, shard)
	switch {
	case errors.Is(err, events.ErrDamaged):
		return math.MaxUint64, nil
	case err != nil || len(kept) == 0:
		return 0, err
	}
	return kept[0].Entry, nil
}

// sound returns the last entry of the journal up to which every one follows the one before, and its hash.
func (r records) sound(ctx context.Context, shard int) (last uint64, hash events.Hash, err error) {
	p, err := r.store.Pointer(ctx, shard)
	if err != nil && !errors.Is(err, events.ErrDamaged) {
		return 0, hash, err
	}
	next := uint64(1)
	if p.Revision != 0 { // what is before may have been trimmed
		if next, err = r.store.First(ctx, shard); err != nil {
			return 0, hash, err
		}
		next = max(next, 1)
	}
	first := next
	follows := func(rec Record) bool {
		e, err := events.Decode(rec.Data)
		if err != nil || e.Number != next || int(e.Shard) != shard || (next > first || next == 1) && e.Prev != hash {
			return false
		}
		hash, next = e.Hash, next+1
		return true
	}
	for rec, err := range r.store.Read(ctx, shard, next) {
		if err != nil {
			break // somewhere in the page
		}
		if !follows(rec) {
			return next - 1, hash, nil
		}
	}
	for {
		rec, err := r.store.Entry(ctx, shard, next)
		switch {
		case errors.Is(err, ErrTrimmed):
			return next - 1, hash, nil
		case err != nil:
			return 0, hash, err
		case !follows(rec):
			return next - 1, hash, nil
		}
	}
}

// keepReplaced keeps what may have taken the place of an entry.
const keepReplaced = "it was written over, perhaps an entry: restore that"

// judge decides about what is stored behind an entry.
type judge struct {
	shard int
	last  uint64
	hash  events.Hash
	keep  string // why nothing under the number of an entry can be removed
	grown bool   // the journal goes on
	found []Stray
}

func (j *judge) look(k StoredKey) {
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
	case e.Number == j.last+1 && e.Prev == j.hash:
		j.grown = true
		return
	case e.Number == j.last+1:
		s.Problem = fmt.Sprintf("it does not follow entry %d", j.last)
	default: // what is wrong is what is before it
		s.Problem = fmt.Sprintf("entry %d is missing or damaged", j.last+1)
		j.keep = fmt.Sprintf("it may be an entry, since entry %d is there: restore entry %d", k.Entry, j.last+1)
	}
	if k.Entry != 0 && k.Replaced {
		s.Keep = keepReplaced
	}
	j.found = append(j.found, s)
}

// ofAnotherRelease reports whether what cannot be decoded may be an entry all the same: its version is not known, or it is whole
// and something in it is not known.
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
