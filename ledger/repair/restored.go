package repair

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"taskledger/store"
)

const (
	// takenWithin bounds the time that an owner may take to record what was given up: one whose shard is quarantined looks
	// every 2 s, and reads its journal then.
	takenWithin = 20 * time.Second
	takenAgain  = 200 * time.Millisecond
	// silentArchives bounds the shards in a row for which the archive does not answer, some seconds each, before it is not
	// asked about the others.
	silentArchives = 3
)

// giveUp gives up what is missing at the ends of the journals.
func (r Journals) giveUp(ctx context.Context) (all []Stray, err error) {
	members, err := r.Members.ReadMembers(ctx)
	if err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	var silence error // with which the archive did not answer
	silent := 0       // shards in a row
	var deaf error    // with which the logs could not be removed
	for shard := range r.Shards {
		j := restored{shard: shard, away: silence}
		_, j.served = members.Nodes[members.Owners[shard].Node]
		if r.Archive != nil && silent < silentArchives { // before the end is read, which goes on beyond what is archived
			j.archived, j.away = r.Archive.Head(ctx, shard)
			if silence, silent = j.away, silent+1; !errors.Is(silence, store.ErrUnavailable) {
				silence, silent = nil, 0
			}
		}
		s, err := r.restored(ctx, &j)
		if err != nil {
			return all, fmt.Errorf("repair shard %d: %w", shard, err)
		}
		if s != nil {
			if s.GivenUp {
				deaf = r.forgetLogs(ctx, s, deaf)
			}
			s.served = j.served
			all = append(all, *s)
		}
	}
	return all, r.awaitTaken(ctx, all)
}

// forgetLogs removes the logs of the tasks of a shard that was given up, unless that has failed for one before.
func (r Journals) forgetLogs(ctx context.Context, s *Stray, failed error) error {
	if failed == nil && r.ForgetLogs != nil {
		failed = r.ForgetLogs(ctx, s.Shard)
	}
	if failed != nil {
		s.Problem += fmt.Sprintf(
			"; the logs of its tasks could not be removed, and may show as those of later ones: %v",
			failed,
		)
	}
	return failed
}

// awaitTaken takes back what is left to an owner that goes on without looking at it: it may not have seen the archive
// when it took the shard, and the next owner would find another end.
func (r Journals) awaitTaken(ctx context.Context, all []Stray) error {
	until := time.Now().Add(takenWithin)
	for i := range all {
		for s := &all[i]; s.served && s.GivenUp; {
			l, err := r.Losses.Loss(ctx, s.Shard)
			if err != nil {
				return fmt.Errorf("repair shard %d: %w", s.Shard, err)
			}
			if l.Revision == 0 {
				break
			}
			if time.Now().After(until) {
				s.GivenUp, s.Keep = false, "a node serves the shard, and goes on: stop the nodes, and repair again"
				if err := r.Losses.Forget(ctx, l); err != nil {
					return fmt.Errorf("repair shard %d: %w", s.Shard, err)
				}
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(takenAgain):
			}
		}
	}
	return nil
}

// restored is a shard whose journal may have lost its end.
type restored struct {
	shard    int
	served   bool // by a node that lives
	covered  uint64
	first    uint64 // entry that the journal begins with
	archived store.ArchiveHead
	away     error // why the end of the archive is not known
	sound
}

// short reports whether the archive has lost its end, so that its entries and those of the journal do not meet.
func (j *restored) short() bool { return j.archived.Entry != 0 && j.archived.Entry+1 < j.first }

// restored gives up what followed the end of a journal, unless it may still be there. It returns nil where a shard is
// served of which nothing tells that anything is missing: its owner goes on from there.
func (r Journals) restored(ctx context.Context, j *restored) (*Stray, error) {
	var err error
	if j.covered, err = r.covered(ctx, j.shard); err != nil {
		return nil, err
	}
	for range tries {
		if j.sound, err = r.sound(ctx, j.shard); err != nil {
			return nil, err
		}
		if j.first, err = r.Journal.First(ctx, j.shard); err != nil {
			return nil, err
		}
		if j.first <= j.last+1 {
			break
		} // else it was trimmed meanwhile
	}
	if j.short() { // or more was archived and trimmed since
		j.archived, j.away = r.Archive.Head(ctx, j.shard)
	}
	s := &Stray{Shard: j.shard, Entry: j.last, sound: j.sound}
	for k, err := range r.Repairer.Behind(ctx, j.shard, j.last) {
		if err != nil {
			return nil, err
		}
		s.Keep = fmt.Sprintf("%s is stored behind entry %d: restore or remove that first", k.Key, j.last)
		break
	}
	switch {
	case j.covered == math.MaxUint64:
		s.Problem, s.Keep = "the snapshot pointer is damaged", "restore that first"
	case j.covered > j.last:
		s.Problem = fmt.Sprintf("the journal ends with entry %d, and has a snapshot of entry %d", j.last, j.covered)
	case j.archived.Entry > j.last:
		s.Problem = fmt.Sprintf("the journal ends with entry %d, and its archive with entry %d", j.last, j.archived.Entry)
	case j.short():
		s.Problem = fmt.Sprintf(
			"the archive ends with entry %d, and the journal begins with entry %d: those between are in neither",
			j.archived.Entry,
			j.first,
		)
		if j.served {
			s.Keep = "unless the cluster drops entries: stop the nodes, and repair again"
		}
	case j.served && j.away == nil:
		return nil, nil
	case j.served:
		s.Problem, s.Keep = fmt.Sprintf("the archive cannot be read: %v", j.away), "bring the archive back, or stop the nodes"
	default:
		s.Problem = fmt.Sprintf("the journal ends with entry %d: whether it went on is not known", j.last)
	}
	if j.blank || j.last == 0 && j.covered > 0 {
		s.Keep = "no entry is left that can be read: restore one first"
	}
	if s.Keep != "" {
		return s, nil
	}
	s.GivenUp = true
	return s, r.Losses.GiveUp(ctx,
		store.Loss{Shard: j.shard, Entry: j.last, Hash: j.hash, Reason: "the store was restored: " + s.Problem})
}
