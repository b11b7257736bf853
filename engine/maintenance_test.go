package engine_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

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

// What a compaction forgets is free a little later. A store that is full after a defragmentation gets another one
// soon.
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
	j := newJob(task.Policy{})
	n := c.StartNode("a", func(c *cfg) { c.Store = store }, j)
	f := j.submit(t, n, "x")
	j.next(t).succeed("1")
	want(t, f, "1")
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

// unmeasured is a store of which nobody learns how full it is.
type unmeasured struct{ store.Store }

func (s *unmeasured) under(c *cfg) { s.Store, c.Store = c.Store, s }

func (*unmeasured) Usage(context.Context) (store.Usage, error) {
	return store.Usage{}, store.ErrUnavailable
}

// An etcd of one's own is defragmented by nobody: the line must not tell of steps that were never meant.
func TestCare_LogsNoStepThatWasNotTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, false)
		said, wrong := new(atomic.Int64), new(atomic.Int64)
		c.start("a", 0, with((&unmeasured{}).under, func(c *cfg) {
			c.Log = slog.New(counted{counted{c.Log.Handler(), "defragmented", wrong}, "housekeeping of etcd failed", said})
		})).ready(t)
		time.Sleep(10 * time.Second)
		if said.Load() == 0 || wrong.Load() > 0 {
			t.Errorf("the failure was logged %d times, and %d times as of another step", said.Load(), wrong.Load())
		}
	})
}
