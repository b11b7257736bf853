package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/store/memarchive"
)

// gauge is a store that is as full as the test says.
type gauge struct {
	store.Store
	usage atomic.Pointer[store.Usage]
}

func (g *gauge) under(c *cfg) { g.Store, c.Store = c.Store, g }

func (g *gauge) Usage(context.Context) (store.Usage, error) { return *g.usage.Load(), nil }

// show sets the bytes in use, of 16 MiB; the file is always almost that large.
func (g *gauge) show(percent int64) {
	const quota = 16 << 20
	g.usage.Store(&store.Usage{InUse: quota / 100 * percent, Size: quota - 1, Quota: quota, Revision: 1})
}

// awaitDegraded waits until shard 0 says so of itself; "" = that nothing is wrong.
func awaitDegraded(t *testing.T, c *engine.Client, text string) {
	t.Helper()
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("shard 0 says %q", last)
		}
	}()
	testcluster.Await(t, "shard 0 says "+text, func() bool {
		infos, err := c.Shards(within(t))
		if err == nil {
			last = infos[0].Degraded
		}
		return err == nil && strings.Contains(last, text) && (text != "" || last == "")
	})
}

// wantOverload submits a new task, which must be refused with a cause that contains the text.
func wantOverload(t *testing.T, by submitter, b engine.Behavior, cause string) {
	t.Helper()
	f, err := by.Submit(within(t), b, nil, engine.SubmitOptions{ID: "refused"})
	var overload *engine.OverloadError
	if !errors.As(err, &overload) || !strings.Contains(overload.Cause, cause) || overload.RetryAfter <= 0 {
		t.Errorf("submit: got %v, %v; want an *OverloadError that says %q", f, err, cause)
	}
}

// tended counts what is done to keep the store small.
type tended struct {
	gauge
	looks, compactions, defragmentations atomic.Int64
}

func (s *tended) under(c *cfg) { s.Store, c.Store = c.Store, s }

func (s *tended) Usage(ctx context.Context) (store.Usage, error) {
	s.looks.Add(1)
	return s.gauge.Usage(ctx)
}

func (s *tended) Compact(ctx context.Context, revision int64) error {
	s.compactions.Add(1)
	return s.Store.Compact(ctx, revision)
}

func (s *tended) Defragment(context.Context) error {
	s.defragmentations.Add(1)
	return nil
}

// Compactions come with growth, not with time: a store that holds the same costs nothing.
func TestCare_CompactsWhenTheStoreHasGrown(t *testing.T) {
	t.Parallel()
	s := &tended{}
	s.show(10)
	testcluster.New(t, testcluster.Options{Shards: 1}).StartNode("a", s.under)
	looked := func(n int64) {
		t.Helper()
		before := s.looks.Load()
		testcluster.Await(t, "looks at the store", func() bool { return s.looks.Load() >= before+n })
	}
	looked(8) // longer than what was replaced is kept
	if n := s.compactions.Load(); n != 0 {
		t.Errorf("%d compactions of a store that does not grow", n)
	}
	for n := range int64(2) {
		s.show(70) // of 16 MiB
		testcluster.Await(t, "a compaction", func() bool { return s.compactions.Load() > n })
		s.show(10)
		looked(2)
	}
	if n := s.defragmentations.Load(); n != 1 {
		t.Errorf("%d defragmentations of a file that is almost as large as the quota, and mostly empty; want one", n)
	}
}

// What a compaction forgets is free a little later. A store that is full after a defragmentation gets another one soon.
func TestCare_DefragmentsAgainWhileTheStoreIsFull(t *testing.T) {
	t.Parallel()
	s := &tended{}
	s.usage.Store(&store.Usage{InUse: 1 << 20, Size: 16 << 20, Quota: 16 << 20, Revision: 1, Full: true})
	testcluster.New(t, testcluster.Options{Shards: 1}).StartNode("a", s.under)
	testcluster.Await(t, "looks at the store, one a second", func() bool { return s.looks.Load() >= 20 })
	testcluster.Await(t, "two defragmentations", func() bool { return s.defragmentations.Load() >= 2 })
	if s.compactions.Load() == 0 {
		t.Error("no compaction")
	}
}

// A store that is almost full takes no new tasks; those that exist are joined, retried and completed. What counts is the
// bytes in use: the file never shrinks.
func TestBrake_RefusesOnlyNewTasksWhileTheStoreIsAlmostFull(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	g := &gauge{}
	g.show(79)
	j := newJob(engine.Policy{MaxAttempts: 2})
	c.StartNode("a", g.under, j)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	first := j.next(t)
	g.show(85)
	awaitDegraded(t, client.Client, "the store holds")
	wantOverload(t, client, j, "the store holds")
	joined := j.submit(t, client, "x")
	if !joined.Joined() {
		t.Error("the second submit has not joined the task")
	}
	first.ends <- engine.Outcome{Err: &events.Error{Code: "again", Retryable: true}, Next: time.Now()}
	j.next(t).succeed("1")
	want(t, f, "1")
	want(t, joined, "1")
	if _, err := client.Retry(within(t), "x"); err != nil {
		t.Errorf("retry: %v", err)
	}
	j.next(t).succeed("2")
	want(t, client.Attach("x"), "2")
	g.show(79)
	awaitDegraded(t, client.Client, "")
	f = j.submit(t, client, "refused")
	j.next(t).succeed("3")
	want(t, f, "3")
}

// What is ready besides goes on.
func TestBrake_RepetitionsWaitUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, g := newModelled(t, true), &gauge{}
		g.show(1)
		j := newJob(engine.Policy{MaxAttempts: 1, Every: time.Minute})
		n := c.start("a", 0, g.under, j)
		n.ready(t)
		var futures []*engine.Future
		for _, id := range []events.TaskID{"x", "y"} {
			f, err := n.Submit(within(t), j, nil, engine.SubmitOptions{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			j.next(t).ends <- engine.Outcome{Err: &events.Error{Code: "broken"}}
			futures = append(futures, f)
		}
		later, err := n.Submit(within(t), j, nil, engine.SubmitOptions{ID: "later", Delay: 3 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		g.show(90)
		time.Sleep(2 * time.Minute)
		j.nothing(t)
		if e, err := n.Explain(within(t), "x"); err != nil || e.Why != engine.WhyStoreFull {
			t.Errorf("explained by %+v, %v", e, err)
		}
		time.Sleep(2 * time.Minute)
		j.next(t).succeed("1")
		want(t, later, "1")
		g.show(1)
		r := j.next(t)
		if r.Number != 2 || r.Failures != 0 {
			t.Errorf("attempt %d after %d failures of its run, want the first of the second run", r.Number, r.Failures)
		}
		r.succeed("2")
		for _, f := range futures {
			if _, err := f.Wait(within(t)); err == nil {
				t.Errorf("the first run of %s succeeded", f.ID())
			}
		}
	})
}

// The tasks of a shard that have not ended must fit into the store twice, as snapshots.
func TestBrake_RefusesMoreLiveTasksThanTheStoreCanHold(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	g := &gauge{}
	g.show(1)
	j := newJob(engine.Policy{})
	c.StartNode("a", g.under, j)
	client := c.StartClient("caller", nil)
	large := []byte(`"` + strings.Repeat("x", 60<<10) + `"`)
	put := func(i int) error {
		_, err := client.Submit(within(t), j, large, engine.SubmitOptions{ID: events.TaskID(fmt.Sprint("later", i)), NotBefore: time.Now().Add(time.Hour)})
		return err
	}
	n, err := 0, error(nil)
	for ; err == nil && n < 100; n++ {
		err = put(n)
	}
	if held := int64(n-1) * int64(len(large)); held < 3<<20 || held > 4<<20+int64(len(large)) {
		t.Errorf("%d bytes were accepted; want a quarter of 16 MiB", held)
	}
	if overload, refused := errors.AsType[*engine.OverloadError](err); !refused || !strings.Contains(overload.Cause, "tasks of the shard") {
		t.Errorf("the last submit: %v", err)
	}
	awaitDegraded(t, client.Client, "tasks of the shard")
	for i := range 10 {
		if err := client.Delete(within(t), events.TaskID(fmt.Sprint("later", i))); err != nil {
			t.Fatal(err)
		}
	}
	awaitDegraded(t, client.Client, "")
	if err := put(0); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// etcd is filled up under a node. Its session lives on, the outcome of what ran is kept until there is space, and new tasks
// are refused with the remedy.
func TestStore_FullLosesNothing(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second
	c := testcluster.New(t, testcluster.Options{Shards: 1, Quota: 16 << 20, TTL: ttl})
	j := newJob(engine.Policy{})
	n := c.StartNode("a", nil, j)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	r := j.next(t)
	session := n.SessionID()
	fillStore(t, c)
	r.succeed("1")
	awaitDegraded(t, client.Client, "defragment and disarm the alarm")
	testcluster.Await(t, "refusal with the remedy", func() bool {
		one, cancel := context.WithTimeout(t.Context(), 2*ttl) // one decided with the outcome has no answer
		defer cancel()
		_, err := client.Submit(one, j, nil, engine.SubmitOptions{ID: "refused"})
		var overload *engine.OverloadError
		return errors.As(err, &overload) && strings.Contains(overload.Cause, "defragment and disarm the alarm")
	})
	for what, question := range reads(client.Client, "x") {
		if err := question(within(t)); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "defragment and disarm the alarm") {
			t.Errorf("%s: %v", what, err)
		}
	}
	stuck, cancel := context.WithTimeout(t.Context(), 5*ttl/2)
	defer cancel()
	if got, err := f.Wait(stuck); stuck.Err() == nil {
		t.Fatalf("got %s, %v from a full store", got, err)
	}
	emptyStore(t, c)
	want(t, f, "1")
	testcluster.Await(t, "new tasks accepted", func() bool {
		_, err := client.Submit(within(t), j, nil, engine.SubmitOptions{ID: "refused"})
		return err == nil
	})
	j.next(t).succeed("2")
	wantHistory(t, n.Client, "x", "Created Started Succeeded")
	if now := n.SessionID(); now != session {
		t.Errorf("session %s after %s: it has ended", now, session)
	}
}

// A sender has one batch under way: one that waits for room must not make its caller's later tasks wait in silence.
func TestStore_FullRefusesWhatFollowsATaskThatWaitsForRoom(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1, Quota: 16 << 20})
	g := &gauge{}
	g.show(0) // no look at the store refuses anything
	j := newJob(engine.Policy{})
	c.StartNode("a", g.under, j)
	client := c.StartClient("caller", nil)
	first := j.submit(t, client, "x")
	j.next(t).succeed("1")
	want(t, first, "1")
	fillStore(t, c)
	gone, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if f, err := client.Submit(gone, j, nil, engine.SubmitOptions{ID: "waits"}); !errors.Is(err, engine.ErrUnknown) {
		t.Errorf("what is in the entry: got %v, %v", f, err)
	}
	for i := range 3 {
		wantOverload(t, client, j, "defragment and disarm the alarm")
		if t.Failed() {
			t.Fatalf("submit %d behind it", i)
		}
	}
	emptyStore(t, c)
	j.next(t).succeed("2")
	want(t, client.Attach("waits"), "2")
}

// Without a session nobody owns the shard whose owner compacts, and a full store refuses sessions.
func TestCare_MakesRoomForASessionToBegin(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1, Quota: 16 << 20, TTL: 6 * time.Second})
	store, err := etcdstore.Open(within(t), etcdstore.Config{Client: c.Etcd, Shards: 1, Defragment: func(ctx context.Context) error {
		over, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Endpoint}, Context: ctx})
		if err != nil {
			return err
		}
		defer over.Close()
		_, err = over.Defragment(ctx, c.Endpoint)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	fillStore(t, c)
	j := newJob(engine.Policy{})
	n := c.StartNode("a", func(c *cfg) { c.Store = store }, j)
	f := j.submit(t, n, "x")
	j.next(t).succeed("1")
	want(t, f, "1")
}

func TestDrain_EndsWhileTheStoreIsFull(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1, Quota: 16 << 20})
	n := c.StartNode("a", nil, newJob(engine.Policy{}))
	fillStore(t, c)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("the node does not stop")
		emptyStore(t, c)
		<-stopped
	}
}

// fillStore writes until the alarm is raised.
func fillStore(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	text := strings.Repeat("x", 1<<20)
	for range 100 {
		_, err := c.Etcd.Put(within(t), "filler", text)
		if errors.Is(err, rpctypes.ErrNoSpace) || errors.Is(err, rpctypes.ErrGRPCNoSpace) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("etcd is not full")
}

// emptyStore does what the message asks for.
func emptyStore(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	over, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Endpoint}, Context: t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	gone, err := over.Delete(within(t), "filler")
	if err == nil {
		_, err = over.Compact(within(t), gone.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		_, err = over.Defragment(within(t), c.Endpoint)
	}
	if err == nil {
		_, err = over.AlarmDisarm(within(t), &clientv3.AlarmMember{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

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
	store.Store
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
	infos, err := n.Shards(within(t))
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
		return errors.Join(s.Store.Trim(ctx, o, p, first, (first+until+1)/2), engine.ErrUnavailable)
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

// Of a trim that failed some pieces may have been made: what reads the journal from its first entry must not begin before it.
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

// Nobody who did not choose it should learn of it from a full etcd.
func TestNode_SaysAtItsStartThatNothingIsArchivedUnlessThatIsChosen(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 1})
	for name, configure := range map[string]func(*cfg){
		"not chosen": func(*cfg) {},
		"kept":       func(c *cfg) { c.Trimming = engine.TrimNothing },
		"dropped":    func(c *cfg) { c.Trimming = engine.TrimAll },
		"archived":   func(c *cfg) { c.Archive = newShelf() },
		"no owner":   noShards,
	} {
		var log strings.Builder // read when the node has ended
		n := c.StartNode(strings.ReplaceAll(name, " ", "-"), func(c *cfg) {
			configure(c)
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		n.Stop()
		if said := strings.Contains(log.String(), "no archive is configured"); said != (name == "not chosen") {
			t.Errorf("%s: %s", name, log.String())
		}
	}
}

func TestCare_WarnsOnceOfAQuotaThatIsTooSmallForTheShards(t *testing.T) {
	const least = modelledShards * 3 << 20 / 4 * 5
	for quota, want := range map[int64]int64{least - 1: 1, least: 0} {
		synctest.Test(t, func(t *testing.T) {
			c := newModelled(t, false)
			g, said := &gauge{}, new(atomic.Int64)
			g.usage.Store(&store.Usage{InUse: 1, Size: 1, Quota: quota, Revision: 1})
			c.start("a", 0, with(g.under, func(c *cfg) {
				c.Log = slog.New(counted{c.Log.Handler(), "the store's quota is too small for so many shards", said})
			})).ready(t)
			time.Sleep(time.Minute)
			if got := said.Load(); got != want {
				t.Errorf("quota of %d bytes: warned %d times, want %d", quota, got, want)
			}
		})
	}
}

// Where the bytes of a store that is almost full are no tasks, the past takes them, and the command that removes it is told.
func TestBrake_TellsTheCommandThatCompactsWhereLiveDataIsSmall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trimming engine.Trimming
		advice   string
	}{
		"of little":      {engine.TrimAll, "tasks and items are few of these, so compact etcd (etcdctl compact 1)"},
		"of the journal": {engine.TrimNothing, "archive, or raise the quota"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &gauge{}
			g.show(85)
			n := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 1}).StartNode("a", with(g.under, func(cfg *cfg) { cfg.Trimming = c.trimming }))
			awaitDegraded(t, n.Client, c.advice)
		})
	}
}
