package works_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/progress"
	"taskledger/work/segmentation"
)

// shape says what a work of numbers looks like.
type shape struct {
	id         string
	partitions int
	items      int64 // of each partition
	buckets    int64
	workers    int64
	threads    int64
	modes      []work.Mode // of the partitions; nil = all full
	limit      int64       // of the counter "changes"; below 0 = there is none
	policy     task.Policy
	rules      []work.Rule
}

// number is an item: a number of a partition.
type number struct {
	partition string
	n         int64
}

// tally counts what nodes have processed.
type tally struct {
	mu      sync.Mutex
	times   map[number]int
	buckets map[string]map[int64]int // started, by partition and number
	nodes   map[string]int           // items by node
	applied map[int64]int            // by full partitions, after their permit
}

func newTally() *tally {
	return &tally{
		times:   map[number]int{},
		buckets: map[string]map[int64]int{},
		nodes:   map[string]int{},
		applied: map[int64]int{},
	}
}

// processed counts an item.
func (t *tally) processed(node string, it number) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times[it]++
	t.nodes[node]++
}

// began counts the start of a bucket.
func (t *tally) began(partition string, bucket int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buckets[partition] == nil {
		t.buckets[partition] = map[int64]int{}
	}
	t.buckets[partition][bucket]++
}

func (t *tally) apply(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applied[n]++
}

// total counts items that were processed, repetitions included.
func (t *tally) total() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, times := range t.times {
		n += times
	}
	return n
}

// appliedTo returns the numbers that something was applied to, in order.
func (t *tally) appliedTo() []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.applied))
}

// applications returns how often something was applied to each number.
func (t *tally) applications() map[int64]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.applied)
}

// byNode returns how many items each node has processed.
func (t *tally) byNode() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.nodes)
}

// define defines the work of a shape for a node: process is called for each number.
func (s *shape) define(
	node string, to *tally, process func(ctx context.Context, n int64) error,
) *work.Work[struct{}, int64] {
	var all []work.Partition[struct{}, int64]
	for i := range max(s.partitions, 1) {
		id := fmt.Sprint("p", i+1)
		p := work.Partition[struct{}, int64]{
			ID: id,
			Items: func(_ context.Context, _ struct{}, b work.Bucket) iter.Seq2[int64, error] {
				to.began(id, b.Number)
				from, until := b.From, b.To
				if s.buckets <= 1 {
					from, until = 0, s.items
				}
				return func(yield func(int64, error) bool) {
					for n := from; n < until && yield(n, nil); n++ {
					}
				}
			},
			Count: func(context.Context, struct{}) (int64, error) { return s.items, nil },
			Process: func(ctx context.Context, n int64) error {
				err := process(ctx, n)
				if err == nil {
					to.processed(node, number{id, n})
				}
				return err
			},
			Workers: s.workers,
			Threads: s.threads,
			Rules:   s.rules,
		}
		if s.buckets > 1 {
			p.Segmentation = segmentation.Plan{Kind: segmentation.Numeric, To: s.items, Buckets: s.buckets}
		}
		if s.modes != nil {
			p.Mode = s.modes[i]
		}
		if s.limit >= 0 && s.modes != nil {
			p.Thresholds = []work.Threshold{{Counter: "changes", Limit: s.limit}}
		}
		all = append(all, p)
	}
	return work.Define(s.id, &work.Options{Policy: s.policy}, all...)
}

// world is a cluster of nodes that run works.
type world struct {
	*testing.T
	cluster *testcluster.Cluster
	nodes   []*testcluster.Node
	client  *testcluster.Client
}

// newWorld starts nodes that run what behaviors returns for each of them, and a client.
func newWorld(
	t *testing.T, o testcluster.Options, slots int, behaviors func(node string) []task.Behavior, names ...string,
) *world {
	t.Helper()
	w := &world{T: t, cluster: testcluster.New(t, o)}
	limited := func(cfg *engine.NodeConfig) { cfg.Slots = slots }
	w.nodes = w.cluster.StartNodes(limited, behaviors, names...)
	w.client = w.cluster.StartClient("client", nil)
	return w
}

func (w *world) must(errs ...error) {
	w.Helper()
	if err := errors.Join(errs...); err != nil {
		w.Fatal(err)
	}
}

func (w *world) within() context.Context { return testcluster.Within(w) }

// submit asks for a run of a work.
func (w *world) submit(of *work.Work[struct{}, int64], id events.TaskID) *behaviors.Future[work.Result] {
	w.Helper()
	f, err := of.Submit(w.within(), w.client, struct{}{}, task.SubmitOptions{ID: id})
	w.must(err)
	return f
}

// progress returns how far a work is; false while none is planned.
func (w *world) progress(id events.TaskID) (progress.Work, bool) {
	w.Helper()
	is, err := w.client.Operations().WorkLinear(w.within(), id)
	if errors.Is(err, task.ErrNotFound) {
		return is, false
	}
	w.must(err)
	return is, true
}

// show returns a task.
func (w *world) show(id events.TaskID) task.Task {
	w.Helper()
	t, err := w.client.GetLinear(w.within(), id)
	w.must(err)
	return t
}

// await waits until something holds.
func (w *world) await(what string, holds func() bool) {
	w.Helper()
	testcluster.Await(w, what, holds)
}

// moves returns the events of the buckets of a work.
func (w *world) moves(id events.TaskID) (all []*events.BucketsMoved) {
	w.Helper()
	for ev, err := range w.client.Ledger().History(w.within(), id) {
		w.must(err)
		if b, is := ev.Body.(*events.BucketsMoved); is {
			all = append(all, b)
		}
	}
	return all
}

// done returns the buckets of a work that are done.
func (w *world) done(id events.TaskID) map[uint64]bool {
	w.Helper()
	done := map[uint64]bool{}
	for _, b := range w.moves(id) {
		if b.Ended != 0 {
			done[b.Ended] = true
		}
	}
	return done
}

// doneOnce reports an error unless each of so many buckets is done once.
func (w *world) doneOnce(id events.TaskID, buckets int64) {
	w.Helper()
	done := map[uint64]int{}
	for _, b := range w.moves(id) {
		if b.Ended != 0 {
			done[b.Ended]++
		}
	}
	for n := range uint64(buckets) {
		if done[n+1] != 1 {
			w.Errorf("bucket %d is done %d times", n+1, done[n+1])
		}
	}
	if int64(len(done)) != buckets {
		w.Errorf("%d buckets are done, want %d", len(done), buckets)
	}
}

// workersEnded waits until no worker of the work is left that could run.
func (w *world) workersEnded(id events.TaskID) {
	w.Helper()
	w.await("the workers have ended", func() bool {
		for t, err := range w.client.List(w.within(), task.Filter{Affinity: id.Affinity(), Limit: 100}) {
			if err != nil { // a shard does not answer
				return false
			}
			if t.ID != id && t.Status != task.Success && t.Status != task.Failure {
				return false
			}
		}
		return true
	})
}

// short waits a moment, or until ctx ends.
func short(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
