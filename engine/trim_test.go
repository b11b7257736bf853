package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/ledger/repair"
	"taskledger/store"
	"taskledger/store/memarchive"
	"taskledger/task"
)

// shelf is an archive in memory that may be away, and may take its time until what it has acknowledged counts.
type shelf struct {
	held     *memarchive.Archive
	away     atomic.Bool
	why      error                     // of what is asked while it is away
	archived atomic.Pointer[time.Time] // first
	settled  time.Duration
}

func newShelf() *shelf { return &shelf{held: memarchive.New(), why: errAway} }

var errAway = errors.New("the archive is away")

func (a *shelf) err() error {
	if a.away.Load() {
		return a.why
	}
	return nil
}

func (a *shelf) Head(ctx context.Context, shard int) (store.ArchiveHead, error) {
	if err := a.err(); err != nil {
		return store.ArchiveHead{}, err
	}
	return a.held.Head(ctx, shard)
}

func (a *shelf) Archive(ctx context.Context, shard int, after store.ArchiveHead, entries []store.Record) (store.ArchiveHead, error) {
	if err := a.err(); err != nil {
		return after, err
	}
	head, err := a.held.Archive(ctx, shard, after, entries)
	if err == nil {
		now := time.Now()
		a.archived.CompareAndSwap(nil, &now)
	}
	return head, err
}

func (a *shelf) Confirm(ctx context.Context, shard int, head store.ArchiveHead, entries []store.Record) error {
	if err := a.err(); err != nil {
		return err
	}
	return a.held.Confirm(ctx, shard, head, entries)
}

func (a *shelf) DurableAfter() time.Duration { return a.settled }

func (a *shelf) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return a.read(func() iter.Seq2[store.Record, error] { return a.held.ReadArchive(ctx, shard, from) })
}

func (a *shelf) FindArchived(ctx context.Context, shard int, task events.TaskID, last uint64) iter.Seq2[store.Record, error] {
	return a.read(func() iter.Seq2[store.Record, error] { return a.held.FindArchived(ctx, shard, task, last) })
}

func (a *shelf) read(all func() iter.Seq2[store.Record, error]) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := a.err(); err != nil {
			yield(store.Record{}, err)
			return
		}
		all()(yield)
	}
}

// step names a write of the upkeep of a shard, and on which side of it a node dies.
type step struct {
	write string
	nth   int
	after bool // it was made, and nobody heard of it
}

// mortal is a store and an archive under a node that dies at a step: from then on nothing that it does has an effect.
type mortal struct {
	store.Store
	store.Archive
	at    step
	mu    sync.Mutex
	count map[string]int
	dead  chan struct{}
}

var errDead = errors.New("the process is dead")

func (m *mortal) under(c *cfg) {
	m.Store, c.Store = c.Store, mortalStore{m}
	if m.Archive != nil {
		c.Archive = mortalArchive{m}
	}
}

// do makes a write, unless the node is dead or dies before it.
func (m *mortal) do(write string, make func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.dead:
		return errDead
	default:
	}
	m.count[write]++
	if write != m.at.write || m.count[write] != m.at.nth {
		return make()
	}
	close(m.dead)
	if m.at.after {
		if err := make(); err != nil {
			return err
		}
	}
	return errDead
}

type mortalStore struct{ *mortal }

func (s mortalStore) Cluster() store.Cluster { return s.Store.Cluster() }

func (s mortalStore) Append(ctx context.Context, o store.Ownership, after store.Head, entry []byte) (rev int64, err error) {
	err = s.do("append", func() (err error) {
		rev, err = s.Store.Append(ctx, o, after, entry)
		return err
	})
	return rev, err
}

func (s mortalStore) PutPart(ctx context.Context, o store.Ownership, entry uint64, part int, data []byte) error {
	return s.do("part", func() error { return s.Store.PutPart(ctx, o, entry, part, data) })
}

func (s mortalStore) Publish(ctx context.Context, o store.Ownership, seen store.SnapshotPointer, made store.SnapshotInfo) (p store.SnapshotPointer, err error) {
	err = s.do("publish", func() (err error) {
		p, err = s.Store.Publish(ctx, o, seen, made)
		return err
	})
	return p, err
}

func (s mortalStore) Trim(ctx context.Context, o store.Ownership, p store.SnapshotPointer, first, until uint64) error {
	return s.do("trim", func() error { return s.Store.Trim(ctx, o, p, first, until) })
}

type mortalArchive struct{ *mortal }

func (a mortalArchive) Archive(ctx context.Context, shard int, after store.ArchiveHead, entries []store.Record) (h store.ArchiveHead, err error) {
	err = a.do("archive", func() (err error) {
		h, err = a.mortal.Archive.Archive(ctx, shard, after, entries)
		return err
	})
	return h, err
}

func (a mortalArchive) Head(ctx context.Context, shard int) (store.ArchiveHead, error) {
	return a.mortal.Archive.Head(ctx, shard)
}

func (a mortalArchive) Confirm(ctx context.Context, shard int, head store.ArchiveHead, entries []store.Record) error {
	return a.mortal.Archive.Confirm(ctx, shard, head, entries)
}

func (a mortalArchive) DurableAfter() time.Duration { return a.mortal.Archive.DurableAfter() }

func (a mortalArchive) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return a.mortal.Archive.ReadArchive(ctx, shard, from)
}

func (a mortalArchive) FindArchived(ctx context.Context, shard int, task events.TaskID, last uint64) iter.Seq2[store.Record, error] {
	return a.mortal.Archive.FindArchived(ctx, shard, task, last)
}

// small is a store that says that it is small, so that short tails make snapshots due.
type small struct{ store.Store }

func (small) Usage(context.Context) (store.Usage, error) {
	return store.Usage{InUse: 1, Size: 1, Quota: 16 << 20, Revision: 1}, nil
}

func (s small) Durability() string {
	if d, tells := s.Store.(store.Durable); tells {
		return d.Durability()
	}
	return ""
}

// remedyOf returns what is told to do about an archive that does not continue the journal of a store.
func remedyOf(s store.Store) string {
	if store.InFiles(s) {
		return "restore the whole directory"
	}
	return "taskledger repair --restored"
}

// bulk is parameters of two KiB: some hundred tasks make a tail long enough for a snapshot.
var bulk = []byte(`"` + strings.Repeat("x", 2<<10) + `"`)

// fill runs n tasks of bulky parameters to their end.
func fill(t *testing.T, by *engine.Client, b task.Behavior, prefix string, n int) {
	t.Helper()
	const atOnce = 64
	ctx := task.AwaitNodes(t.Context()) // the node may be starting
	var all sync.WaitGroup
	for worker := range atOnce {
		all.Go(func() {
			for i := worker; i < n; i += atOnce {
				id := events.TaskID(fmt.Sprint(prefix, i))
				f, err := by.Submit(ctx, b, bulk, task.SubmitOptions{ID: id})
				if err == nil {
					_, err = f.Wait(ctx)
				}
				if err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// wantWhole checks that archive and journal together hold every entry, and alike where both do. The journal may be
// trimmed meanwhile.
func wantWhole(t *testing.T, kept store.Store, archive *shelf, shard int) {
	t.Helper()
	for {
		first, err := kept.First(within(t), shard)
		if err != nil {
			t.Fatal(err)
		}
		archived := archive.held.Records(shard)
		for i, r := range archived {
			if r.Number != uint64(i+1) {
				t.Fatalf("archived entry %d is numbered %d", i+1, r.Number)
			}
		}
		if first > uint64(len(archived))+1 {
			t.Fatalf("the journal begins with entry %d, the archive ends with %d", first, len(archived))
		}
		err = compareWith(t, archived, kept.Read(within(t), shard, first))
		if errors.Is(err, store.ErrTrimmed) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

func compareWith(t *testing.T, archived []store.Record, journal iter.Seq2[store.Record, error]) error {
	t.Helper()
	for r, err := range journal {
		if err != nil {
			return err
		}
		if r.Number > uint64(len(archived)) {
			return nil
		}
		if a := archived[r.Number-1]; a.Head != r.Head || !bytes.Equal(a.Data, r.Data) {
			t.Fatalf("entry %d differs in the archive", r.Number)
		}
	}
	return nil
}

// At every write of a snapshot, an archived segment and a trim the owner dies, before it or just after it. Whoever
// comes next finds the shard as it was, goes on, and loses and doubles nothing.
func TestUpkeep_DeathAtAnyStepLosesAndDoublesNothing(t *testing.T) {
	for _, write := range []string{"part", "publish", "archive", "trim"} {
		for nth := 1; nth <= 2; nth++ {
			for _, after := range []bool{false, true} {
				at := step{write, nth, after}
				t.Run(fmt.Sprintf("%s/%d/made=%t", write, nth, after), func(t *testing.T) {
					t.Parallel()
					dieAt(t, at)
				})
			}
		}
	}
}

func dieAt(t *testing.T, at step) {
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	archive := newShelf()
	w := &worker{attempts: map[events.TaskID]int{}}
	m := &mortal{Archive: archive, at: at, count: map[string]int{}, dead: make(chan struct{})}
	var store store.Store
	victim := c.StartNode("a", func(c *cfg) {
		store = c.Store
		c.Store = small{store}
		m.under(c)
	}, w)
	client := c.StartClient("caller", nil)
	var work sync.WaitGroup
	work.Go(func() { fill(t, client.Client, w, "x", 3000) })
	select {
	case <-m.dead:
	case <-within(t).Done():
		t.Fatalf("%+v was not reached: %v", at, m.count)
	}
	victim.Kill()
	endKilled(t, c)
	c.StartNode("b", func(c *cfg) { c.Store, c.Archive = small{c.Store}, archive }, w)
	work.Wait()
	testcluster.Await(t, "trimmed journal", func() bool {
		first, err := store.First(within(t), 0)
		return err == nil && first > 1
	})
	wantWhole(t, store, archive, 0)
	for id, n := range w.attempts {
		if n > 2 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
}

// halting is a store of which one reading of the journal from its first entry on breaks off half-way, once something
// is archived.
type halting struct {
	store.Store
	archive *shelf
	halted  atomic.Bool
}

func (s *halting) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		n := 0
		for r, err := range s.Store.Read(ctx, shard, from) {
			if n++; n == 3 && from == 1 && s.archive.archived.Load() != nil && !s.halted.Swap(true) {
				yield(store.Record{}, errors.New("no answer"))
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// With an archive that takes its time the segment is read from the journal again, to be compared.
func TestTrim_ReadBackThatBreaksOffIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	archive := newShelf()
	archive.settled = 2 * time.Second
	w := &worker{attempts: map[events.TaskID]int{}}
	s := &halting{archive: archive}
	n := c.StartNode("a", func(c *cfg) {
		s.Store = small{c.Store}
		c.Store, c.Archive = s, archive
	}, w)
	fill(t, n.Client, w, "x", 2000)
	testcluster.Await(t, "trim", func() bool {
		first, err := s.First(within(t), 0)
		return err == nil && first > 1
	})
	if !s.halted.Load() {
		t.Error("no reading broke off")
	}
	wantWhole(t, s, archive, 0)
}

// What is not archived yet is told as the node's, and grows while the archive is away.
func TestTrim_TellsHowManyEntriesAreNotArchived(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	archive := newShelf()
	w := &worker{attempts: map[events.TaskID]int{}}
	n := c.StartNode("a", func(c *cfg) { c.Store, c.Archive = small{c.Store}, archive }, w)
	if v := n.Vitals(); v.EntriesUnarchived != 0 || !v.Archived.IsZero() {
		t.Errorf("before anything is known %d entries are not archived, and some were at %s", v.EntriesUnarchived, v.Archived)
	}
	info := func() engine.ShardInfo {
		all, err := n.Operations().Shards(within(t))
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		return all[0]
	}
	fill(t, n.Client, w, "x", 2000)
	testcluster.Await(t, "the node tells what the shard does", func() bool {
		s := info()
		return s.Archived > 0 && n.Vitals().EntriesUnarchived == int64(s.Entries-s.Archived)
	})
	if at := n.Vitals().Archived; at.Before(archive.archived.Load().Add(-time.Minute)) || at.After(time.Now()) {
		t.Errorf("it was archived last at %s", at)
	}
	archive.away.Store(true)
	was := info()
	fill(t, n.Client, w, "y", 2000)
	now := info()
	if got := n.Vitals().EntriesUnarchived; now.Entries == was.Entries || got < int64(now.Entries-was.Entries) {
		t.Errorf("%d entries are not archived, of %d that were made while the archive was away", got, now.Entries-was.Entries)
	}
	archive.away.Store(false)
}

// endKilled revokes the one lease there is, that of a killed node, so that the test does not wait for its end.
func endKilled(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	leases, err := c.Etcd.Leases(within(t))
	if err == nil && len(leases.Leases) == 1 {
		_, err = c.Etcd.Revoke(within(t), leases.Leases[0].ID)
	}
	if err != nil {
		t.Fatalf("end the session of the killed node: %v", err)
	}
}

// A journal lost its end, and went on beyond that of its archive, while the archive was away. Once an operator has
// given the loss up, the archive holds no entry behind the end that was left: it begins anew all the same, and the
// journal is trimmed.
func TestTrim_BeginsAnArchiveAnewThatTheJournalOvertookBeforeItsLossWasGivenUp(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	archive := newShelf()
	archive.away.Store(true)
	w := &worker{attempts: map[events.TaskID]int{}}
	var kept store.Store
	under := func(c *cfg) { kept, c.Store, c.Archive = c.Store, small{c.Store}, archive }
	n := c.StartNode("a", under, w)
	fill(t, n.Client, w, "x", 2000)
	var lost []store.Record // by the journal, from entry 5 on
	for rec, err := range kept.Read(within(t), 0, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if lost = append(lost, rec); rec.Number == 5 {
			break
		}
	}
	fifth := testcluster.Decoded(t, lost[4].Data)
	fifth.Owner = "before"
	lost[4].Data = testcluster.Sealed(t, fifth)
	if _, err := archive.held.Archive(within(t), 0, store.ArchiveHead{}, lost); err != nil {
		t.Fatal(err)
	}
	archive.away.Store(false)
	testcluster.Await(t, "an archive that is seen to hold another history", func() bool {
		all, err := n.Operations().Shards(within(t))
		return err == nil && strings.Contains(all[0].Degraded, "entry 5 differs") &&
			strings.Contains(all[0].Degraded, remedyOf(kept))
	})
	n.Stop()
	operator := c.StartClient("operator", func(c *engine.ClientConfig) { c.Archive = archive })
	found, err := operator.Operations().Repair(within(t), repair.Options{Restored: true})
	if err != nil || len(found) != 1 || !found[0].GivenUp || found[0].Entry <= 5 {
		t.Fatalf("gave up %+v, %v", found, err)
	}
	c.StartNode("b", under, w)
	testcluster.Await(t, "a trimmed journal", func() bool {
		first, err := kept.First(within(t), 0)
		return err == nil && first > 1
	})
	wantWhole(t, kept, archive, 0)
}

// An archive that has lost its end, since a stream was restored from an old backup, say, does not reach what the
// journal begins with: what was trimmed between is in neither. That is told with the remedy. Once an operator has
// given it up the journal is trimmed again, what the archive had can be read, and every check names what is
// missing.
func TestTrim_GoesOnWhereAnArchiveThatLostItsEndIsGivenUp(t *testing.T) {
	t.Parallel()
	const end = 5 // of what is left of the archive
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	archive := newShelf()
	w := &worker{attempts: map[events.TaskID]int{}}
	var kept store.Store
	under := func(c *cfg) { kept, c.Store, c.Archive = c.Store, small{c.Store}, archive }
	n := c.StartNode("a", under, w)
	first := func() uint64 {
		first, err := kept.First(within(t), 0)
		if err != nil {
			t.Fatal(err)
		}
		return first
	}
	fill(t, n.Client, w, "x", 2000)
	testcluster.Await(t, "a trimmed journal", func() bool { return first() > end+2 })
	n.Stop()
	var whole []memarchive.Segment
	archive.held.Alter(0, func(all []memarchive.Segment) []memarchive.Segment {
		whole = all
		left := slices.Clone(all[:1])
		left[0].Entries = left[0].Entries[:min(end, len(left[0].Entries))]
		left[0].Head.Entry = left[0].Entries[len(left[0].Entries)-1].Number
		return left
	})
	if head, err := archive.held.Head(within(t), 0); err != nil || head.Entry != end {
		t.Fatalf("the archive ends with %+v, %v", head, err)
	}
	was := first()
	n = c.StartNode("b", under, w)
	testcluster.Await(t, "an archive that is seen to have lost its end", func() bool {
		all, err := n.Operations().Shards(within(t))
		return err == nil && strings.Contains(all[0].Degraded, fmt.Sprintf("it ends with entry %d, and the journal begins with entry %d", end, was)) &&
			strings.Contains(all[0].Degraded, remedyOf(kept))
	})
	operator := c.StartClient("operator", func(c *engine.ClientConfig) { c.Archive = archive })
	giveUp := func() repair.Stray {
		found, err := operator.Operations().Repair(within(t), repair.Options{Restored: true})
		if err != nil || len(found) != 1 || !strings.Contains(found[0].Problem, fmt.Sprintf("the archive ends with entry %d", end)) {
			t.Fatalf("found %+v, %v", found, err)
		}
		return found[0]
	}
	if s := giveUp(); s.GivenUp || !strings.Contains(s.Keep, "stop the nodes") {
		t.Errorf("while a node goes on: %+v", s)
	}
	n.Stop()
	if s := giveUp(); !s.GivenUp {
		t.Errorf("while no node goes on: %+v", s)
	}
	n = c.StartNode("c", under, w)
	fill(t, n.Client, w, "y", 2000)
	testcluster.Await(t, "a journal that is trimmed again", func() bool { return first() > was })
	for _, r := range archive.held.Records(0) {
		if r.Number > end && r.Number < was {
			t.Errorf("entry %d is archived", r.Number)
		}
	}
	found, err := n.Ledger().Verify(within(t), ledger.VerifyOptions{})
	if err != nil || found[0].Damage == "" || found[0].At != end+1 {
		t.Errorf("verified %+v, %v; entry %d is missing", found, err, end+1)
	}
	archive.held.Alter(0, func(all []memarchive.Segment) []memarchive.Segment { return append(whole, all[1:]...) }) // for the check at the end
}
