package bench_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/internal/measure"
	"taskledger/store"
	"taskledger/task"
)

const (
	heldTasks   = 100_000 // tasks that wait in the one shard whose owner is timed
	turnListers = 4
)

// turns is a store that times an owner: how long its commits take, and how long it is busy between two of them, while a
// snapshot is being stored and otherwise.
type turns struct {
	store.Store
	on        atomic.Bool
	storing   atomic.Bool // parts of a snapshot, of which one may come at any time
	snapshots atomic.Int64

	mu             sync.Mutex
	last           time.Time
	commits, holds [2][]time.Duration // otherwise, and while one is being stored
}

func (t *turns) Append(ctx context.Context, o store.Ownership, after store.Head, entry []byte) (int64, error) {
	begun, during := time.Now(), 0
	if t.storing.Load() {
		during = 1
	}
	revision, err := t.Store.Append(ctx, o, after, entry)
	if t.on.Load() {
		t.mu.Lock()
		t.commits[during] = append(t.commits[during], time.Since(begun))
		if !t.last.IsZero() {
			t.holds[during] = append(t.holds[during], begun.Sub(t.last))
		}
		t.last = time.Now()
		t.mu.Unlock()
	}
	return revision, err
}

func (t *turns) PutPart(ctx context.Context, o store.Ownership, entry uint64, part int, data []byte) error {
	t.storing.Store(true)
	return t.Store.PutPart(ctx, o, entry, part, data)
}

func (t *turns) Publish(
	ctx context.Context, o store.Ownership, seen store.SnapshotPointer, made store.SnapshotInfo,
) (store.SnapshotPointer, error) {
	defer t.storing.Store(false)
	if t.on.Load() {
		t.snapshots.Add(1)
	}
	return t.Store.Publish(ctx, o, seen, made)
}

// timed is a node that owns one shard, in which many tasks wait.
type timed struct {
	*measure.Node
	turns *turns
}

func startTimed(tb testing.TB) *timed {
	t := &turns{}
	cfg := engine.NodeConfig{Name: "a", Behaviors: []task.Behavior{noop}}
	n := node(tb, servers(tb, 1), cfg, measure.Archived, func(cfg *engine.NodeConfig, c *cluster.Cluster) {
		t.Store, cfg.Store = c.Store, t
	})
	fillWaiting(tb, n, heldTasks)
	return &timed{n, t}
}

// loop runs tasks for a while, and returns the p99, in milliseconds, of commits and of turns between them, otherwise
// and while a snapshot is being stored, and of all turns.
func (n *timed) loop(tb testing.TB, d time.Duration) (commits, holds [2]float64, all float64) {
	tb.Helper()
	t := n.turns
	t.on.Store(true)
	must(measure.Loop(tb.Context(), loadInFlight, d, measure.SubmitAndWait(n.Client)))(tb)
	t.on.Store(false)
	t.mu.Lock()
	defer t.mu.Unlock()
	p99 := func(times ...time.Duration) float64 {
		slices.Sort(times)
		return measure.Quantile(times, 0.99)
	}
	all = p99(slices.Concat(t.holds[:]...)...)
	for i := range holds {
		commits[i], holds[i] = p99(t.commits[i]...), p99(t.holds[i]...)
	}
	t.last, t.commits, t.holds = time.Time{}, [2][]time.Duration{}, [2][]time.Duration{}
	return commits, holds, all
}

// BenchmarkSnapshots measures what a shard with many waiting tasks feels of its snapshots beside tasks in flight.
func BenchmarkSnapshots(b *testing.B) {
	run(b, func(tb testing.TB) figures {
		n := startTimed(tb)
		commits, holds, _ := n.loop(tb, lasts(time.Second, 5*time.Second))
		f := newFigures(tb)
		f.is("commit-p99-ms", commits[0])
		f.is("snapshot-commit-p99-ms", commits[1])
		// Beside snapshots the p99 of the turns of a shard of 100,000 waiting tasks is 10 ms at most.
		f.atMost("turn-p99-ms", holds[0], 10)
		f.atMost("snapshot-turn-p99-ms", holds[1], 10)
		f.atLeast("snapshots", float64(n.turns.snapshots.Load()), 1)
		return f
	})
}

// BenchmarkTurnsBesideLists measures the turns of the owner of one large shard while clients list its tasks: half of
// the clients ask for what no task matches, so that every task is looked at, and half ask for the newest tasks.
func BenchmarkTurnsBesideLists(b *testing.B) {
	run(b, func(tb testing.TB) figures {
		n, d := startTimed(tb), lasts(time.Second, 6*time.Second)
		f := newFigures(tb)
		_, _, alone := n.loop(tb, d)
		f.is("turn-p99-ms", alone)
		lists, stop := context.WithCancel(tb.Context())
		defer stop()
		var g errgroup.Group
		var pages atomic.Int64
		for i := range turnListers {
			of := task.Filter{Affinity: "nobody"}
			if i%2 == 1 {
				of = task.Filter{Limit: pageLimit}
			}
			g.Go(func() error {
				for lists.Err() == nil {
					if _, err := n.ListPage(lists, of, ""); err != nil && lists.Err() == nil {
						return err
					}
					pages.Add(1)
				}
				return nil
			})
		}
		_, _, beside := n.loop(tb, d)
		stop()
		check(tb, g.Wait())
		// Beside lists the p99 of the turns of a shard of 100,000 waiting tasks is 10 ms at most.
		f.atMost("list-turn-p99-ms", beside, 10)
		f.is("pages/s", float64(pages.Load())/d.Seconds())
		return f
	})
}
