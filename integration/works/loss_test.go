package works_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
)

func TestWork_BucketsOfAKilledNodeAreDoneByOthers(t *testing.T) {
	t.Parallel()
	const id events.TaskID = "tenant/reindex"
	s := shape{
		id:      "reindex",
		items:   2000,
		buckets: 40,
		workers: 9,
		threads: 2,
		limit:   -1,
	}
	to := newTally()
	define := func(node string) *work.Work[struct{}, int64] {
		return s.define(node, to, func(ctx context.Context, _ int64) error { return short(ctx, 5*time.Millisecond) })
	}
	w := newWorld(t, testcluster.Options{TTL: 3 * time.Second}, 4, func(node string) []task.Behavior {
		return []task.Behavior{define(node)}
	}, "a", "b", "c")
	f := w.submit(define("client"), id)
	var done uint64
	falls := func() {
		if is, planned := w.progress(id); planned && len(is.Partitions) == 1 {
			if now := is.Partitions[0].Items.Done; now < done {
				t.Errorf("%d items are committed, after %d", now, done)
			} else {
				done = now
			}
		}
	}
	victim := func() *testcluster.Node {
		is, planned := w.progress(id)
		if !planned || done < 400 || len(is.Workers.Nodes) < 3 {
			return nil
		}
		for _, n := range w.nodes {
			for _, at := range is.Workers.Nodes {
				if at.Node == n.Name && at.Buckets > 1 {
					return n
				}
			}
		}
		return nil
	}
	w.await("a node has buckets in the middle", func() bool {
		falls()
		n := victim()
		if n == nil {
			return false
		}
		n.Crash()
		return true
	})
	w.await("the work ends", func() bool {
		falls()
		return w.show(id).Status == task.Success
	})
	r, err := f.Wait(w.within())
	w.must(err)
	if p := r.Partitions[0]; p.Done != s.items || p.Failed+p.Skipped != 0 || p.Buckets != s.buckets {
		t.Errorf("%+v", p)
	}
	w.workersEnded(id)
	w.doneOnce(id, s.buckets)
	if n := len(to.times); n != int(s.items) {
		t.Errorf("%d items were processed, want %d", n, s.items)
	}
	again := 0
	for _, b := range w.moves(id) {
		if b.Returned != 0 {
			again++
		}
	}
	if more := to.total() - int(s.items); again == 0 || more > again*int(s.items/s.buckets) {
		t.Errorf("%d items were processed again, of %d buckets", more, again)
	}
	if by := to.byNode(); len(by) != 3 {
		t.Errorf("items by node: %v", by)
	}
}

func TestWork_WithOneSlotOnEachNodeItEnds(t *testing.T) {
	t.Parallel()
	for _, nodes := range [][]string{{"a"}, {"a", "b", "c"}} {
		t.Run(fmt.Sprint(len(nodes), " nodes"), func(t *testing.T) {
			t.Parallel()
			s := shape{
				id:         "narrow",
				partitions: 2,
				items:      90,
				buckets:    9,
				workers:    5,
				limit:      -1,
			}
			to := newTally()
			var mu sync.Mutex
			now, most := map[string]int{}, map[string]int{}
			define := func(node string) *work.Work[struct{}, int64] {
				count := func(by int) {
					mu.Lock()
					defer mu.Unlock()
					now[node] += by
					most[node] = max(most[node], now[node])
				}
				return s.define(node, to, func(ctx context.Context, _ int64) error {
					count(1)
					defer count(-1)
					return short(ctx, time.Millisecond)
				})
			}
			w := newWorld(t, testcluster.Options{}, 1, func(node string) []task.Behavior {
				return []task.Behavior{define(node)}
			}, nodes...)
			r, err := w.submit(define("client"), "tenant/narrow").Wait(w.within())
			w.must(err)
			for _, p := range r.Partitions {
				if p.Done != s.items {
					t.Errorf("%+v", p)
				}
			}
			w.workersEnded("tenant/narrow")
			for node, n := range most {
				if n != 1 {
					t.Errorf("%d items at once on node %s, want 1", n, node)
				}
			}
		})
	}
}
