package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/store/memarchive"
)

// upkeep is a cluster of one shard with an archive, on a store that tells when it is trimmed.
type upkeep struct {
	store.Store
	*shelf
	trimmed atomic.Pointer[time.Time] // first
}

func (u *upkeep) under(c *cfg) {
	u.Store = c.Store
	c.Store, c.Archive = trimTime{small{c.Store}, u}, u.shelf
}

type trimTime struct {
	small
	u *upkeep
}

func (s trimTime) Trim(ctx context.Context, o store.Ownership, p store.SnapshotPointer, first, until uint64) error {
	now := time.Now()
	s.u.trimmed.CompareAndSwap(nil, &now)
	return s.Store.Trim(ctx, o, p, first, until)
}

// run starts a node and gives it enough to do for two snapshots.
func (u *upkeep) run(t *testing.T) *testcluster.Node {
	t.Helper()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	w := &worker{attempts: map[events.TaskID]int{}}
	n := c.StartNode("a", u.under, w)
	testcluster.Await(t, "two snapshots", func() bool {
		fill(t, n.Client, w, fmt.Sprint("x", len(w.attempts), "/"), 300)
		p, err := u.Store.Pointer(within(t), 0)
		return err == nil && len(p.Kept) == 2
	})
	return n
}

func (u *upkeep) awaitTrim(t *testing.T) {
	t.Helper()
	testcluster.Await(t, "a trimmed journal", func() bool {
		first, err := u.First(within(t), 0)
		return err == nil && first > 1
	})
}

func (u *upkeep) wantUntrimmed(t *testing.T) {
	t.Helper()
	if first, err := u.First(within(t), 0); err != nil || first != 1 || u.trimmed.Load() != nil {
		t.Errorf("the journal begins with entry %d, %v; want it whole", first, err)
	}
}

// An acknowledged segment counts as durable only when the archive has had its time.
func TestTrim_WaitsUntilTheArchiveHasSettled(t *testing.T) {
	t.Parallel()
	u := &upkeep{shelf: newShelf()}
	u.settled = 3 * time.Second
	n := u.run(t)
	testcluster.Await(t, "an archive", func() bool { return u.archived.Load() != nil })
	infos, err := n.Operations().Shards(within(t))
	if err != nil || time.Since(*u.archived.Load()) < u.settled && infos[0].Archived != 0 {
		t.Errorf("%+v, %v: what may not be durable yet is counted as archived", infos, err)
	}
	u.awaitTrim(t)
	if early := u.settled - u.trimmed.Load().Sub(*u.archived.Load()); early > 0 {
		t.Errorf("trimmed %s before the archive had settled", early)
	}
}

// An archive that does not continue this journal keeps it from being trimmed, and says why.
func TestTrim_NothingIntoAForeignArchive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		number uint64
		says   string
	}{
		"other bytes": {1, "entry 1 differs"},
		"ahead":       {1_000_000, "another cluster's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &upkeep{shelf: newShelf()}
			u.held.Alter(0, func([]memarchive.Segment) []memarchive.Segment {
				foreign := store.Record{Head: store.Head{Number: c.number, Revision: 7}, Data: []byte("foreign")}
				return []memarchive.Segment{{Head: store.ArchiveHead{Entry: c.number, Sequence: 1}, Entries: []store.Record{foreign}}}
			})
			u.away.Store(true) // else the shard, of which it has more than the journal, would be quarantined
			n := u.run(t)
			u.away.Store(false)
			awaitDegraded(t, n.Client, c.says)
			awaitDegraded(t, n.Client, remedyOf(u.Store))
			u.wantUntrimmed(t)
			if got := u.held.Records(0); len(got) != 1 {
				t.Errorf("%d entries in the archive after its one", len(got)-1)
			}
			n.Stop() // before the cluster is verified: the archive is not its own
		})
	}
}

// What the archive acknowledged and lost before it had settled is archived again, though no new entry asks for it.
func TestTrim_ArchivesAgainWhatTheArchiveLost(t *testing.T) {
	t.Parallel()
	u := &upkeep{shelf: newShelf()}
	u.settled = 6 * time.Second
	u.run(t)
	testcluster.Await(t, "all that is due in the archive", func() bool {
		p, err := u.Store.Pointer(within(t), 0)
		return err == nil && uint64(len(u.held.Records(0))) == p.Kept[1].Entry-1
	})
	u.wantUntrimmed(t)
	lost := 0
	u.held.Alter(0, func(s []memarchive.Segment) []memarchive.Segment {
		for i := range s {
			lost += len(s[i].Entries)
		}
		return nil
	})
	u.awaitTrim(t)
	if lost == 0 || len(u.held.Records(0)) < lost {
		t.Errorf("%d entries are archived, of %d that were before", len(u.held.Records(0)), lost)
	}
	wantWhole(t, u.Store, u.shelf, 0)
}

// torn is a store whose first trim is cut off between two pieces.
type torn struct {
	store.Store
	trims atomic.Int64
	from  atomic.Uint64 // where the second one was to begin
	begun atomic.Uint64 // where the journal began then
}

func (s *torn) Trim(ctx context.Context, o store.Ownership, p store.SnapshotPointer, first, until uint64) error {
	switch s.trims.Add(1) {
	case 1:
		return errors.Join(s.Store.Trim(ctx, o, p, first, (first+until+1)/2), store.ErrUnavailable)
	case 2:
		begun, err := s.First(ctx, o.Shard)
		if err != nil {
			return err
		}
		s.begun.Store(begun)
		s.from.Store(first)
	}
	return s.Store.Trim(ctx, o, p, first, until)
}

// Of a trim that failed some pieces may have been made: what reads the journal from its first entry must not begin
// before it.
func TestTrim_GoesOnWhereOneWasCutOff(t *testing.T) {
	t.Parallel()
	s := &torn{}
	u := &upkeep{shelf: newShelf()}
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	w := &worker{attempts: map[events.TaskID]int{}}
	n := c.StartNode("a", func(c *cfg) { s.Store = c.Store; c.Store, c.Archive = small{s}, u.shelf }, w)
	testcluster.Await(t, "a second trim", func() bool {
		fill(t, n.Client, w, fmt.Sprint("x", len(w.attempts), "/"), 300)
		return s.from.Load() != 0
	})
	if s.from.Load() != s.begun.Load() || s.begun.Load() < 2 {
		t.Errorf("the trim after it begins with entry %d, the journal with %d", s.from.Load(), s.begun.Load())
	}
	wantWhole(t, s.Store, u.shelf, 0)
}

// While the archive is away the journal grows and the shard says so; then it catches up by itself.
func TestTrim_GoesOnWhenTheArchiveIsBack(t *testing.T) {
	t.Parallel()
	u := &upkeep{shelf: newShelf()}
	u.away.Store(true)
	n := u.run(t)
	awaitDegraded(t, n.Client, errAway.Error())
	u.wantUntrimmed(t)
	u.away.Store(false)
	u.awaitTrim(t)
	awaitDegraded(t, n.Client, "")
	wantWhole(t, u.Store, u.shelf, 0)
}
