package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/store"
	"taskledger/task"
)

// heldTasks wait in the shard whose snapshots are watched.
const heldTasks = 100_000

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

// taken returns how long the owner was busy between commits, sorted, and begins anew.
func (t *turns) taken() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	times := slices.Concat(t.holds[:]...)
	t.last, t.holds = time.Time{}, [2][]time.Duration{}
	slices.Sort(times)
	return times
}

func (t *turns) PutPart(ctx context.Context, o store.Ownership, entry uint64, part int, data []byte) error {
	t.storing.Store(true)
	return t.Store.PutPart(ctx, o, entry, part, data)
}

func (t *turns) Publish(ctx context.Context, o store.Ownership, seen store.SnapshotPointer, made store.SnapshotInfo) (store.SnapshotPointer, error) {
	defer t.storing.Store(false)
	if t.on.Load() {
		t.snapshots.Add(1)
	}
	return t.Store.Publish(ctx, o, seen, made)
}

// watchSnapshots measures what a shard with many waiting tasks feels of its snapshots beside tasks in flight.
func watchSnapshots(ctx context.Context, cfg ScaleConfig, r *ScaleResult) (err error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return err
	}
	s.shards = 1
	defer func() { err = errors.Join(err, s.close()) }()
	link, err := s.link(ctx)
	if err != nil {
		return err
	}
	t := &turns{Store: link.Store}
	n, err := startNodeOn(ctx, link, t, engine.NodeConfig{Name: "a", Archive: link.Archive, Behaviors: []task.Behavior{builtin.Noop()}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	far := time.Now().Add(farAhead)
	if err := inParallel(ctx, heldTasks, func(ctx context.Context, _ int) error {
		_, err := n.Submit(ctx, builtin.Noop(), nil, task.SubmitOptions{NotBefore: far})
		return err
	}); err != nil {
		return err
	}
	t.on.Store(true)
	if _, err := closedLoop(ctx, loadInFlight, cfg.Duration, submitAndWait(n)); err != nil {
		return err
	}
	t.on.Store(false)
	t.mu.Lock()
	defer t.mu.Unlock()
	p99 := func(times []time.Duration) float64 {
		slices.Sort(times)
		return quantile(times, 0.99)
	}
	r.Snapshots = int(t.snapshots.Load())
	r.CommitP99Ms, r.SnapshotCommitP99Ms = p99(t.commits[0]), p99(t.commits[1])
	r.TurnP99Ms, r.SnapshotTurnP99Ms = p99(t.holds[0]), p99(t.holds[1])
	return nil
}
