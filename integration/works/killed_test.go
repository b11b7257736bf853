package works_test

import (
	"context"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/task"
	"taskledger/work"
)

// In a proof 20,000 items are worked on for half a minute or more, and a node is killed every five seconds. Else few
// are, and a node is killed each time that so many more are done.
func TestWork_NodesKilledInTurnAndRestartedLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	const (
		id    events.TaskID = "tenant/import"
		ttl                 = 3 * time.Second
		every               = 5 * time.Second
	)
	s := shape{
		id:      "import",
		items:   int64(testkit.Times(1800, 20_000)),
		buckets: int64(testkit.Times(36, 200)),
		workers: 9,
		threads: 2,
		limit:   -1,
	}
	to := newTally()
	define := func(node string) *work.Work[struct{}, int64] {
		return s.define(node, to, func(ctx context.Context, _ int64) error { return short(ctx, 25*time.Millisecond) })
	}
	names := []string{"a", "b", "c"}
	w := newWorld(t, testcluster.Options{TTL: ttl}, 8, func(node string) []task.Behavior {
		return []task.Behavior{define(node)}
	}, names...)
	f := w.submit(define("client"), id)
	var committed uint64
	killed := map[string]time.Time{} // by session
	var last time.Time
	mayKill := func() bool {
		switch {
		case committed == 0:
			return false
		case testkit.Whole():
			return time.Since(last) >= every
		}
		return len(killed) < len(names) && committed >= uint64(s.items)*uint64(len(killed)+1)/5
	}
	w.await("the work ends", func() bool {
		if is, planned := w.progress(id); planned {
			now := is.Partitions[0].Items.Done
			if now < committed {
				t.Errorf("%d items are committed, after %d", now, committed)
			}
			committed = now
		}
		if w.show(id).Status == task.Success {
			return true
		}
		if mayKill() {
			victim := len(killed) % len(names)
			last = time.Now() // before the crash, which may take a moment
			killed[w.nodes[victim].SessionID()] = last
			w.nodes[victim].Crash()
			w.nodes[victim] = w.cluster.StartNode(names[victim], func(cfg *engine.NodeConfig) { cfg.Slots = 8 },
				define(names[victim]))
		}
		return false
	})
	r, err := f.Wait(w.within())
	w.must(err)
	if p := r.Partitions[0]; p.Done != s.items || p.Failed+p.Skipped != 0 || p.Buckets != s.buckets {
		t.Errorf("%+v", p)
	}
	if len(killed) < len(names) {
		t.Errorf("%d nodes were killed before the work ended, want %d or more", len(killed), len(names))
	}
	w.workersEnded(id)
	w.doneOnce(id, s.buckets)
	if n := len(to.times); n != int(s.items) {
		t.Errorf("%d items were processed, want %d", n, s.items)
	}
	if by := to.byNode(); len(by) != len(names) {
		t.Errorf("items by node: %v", by)
	}
	bound := 10 * (ttl + time.Second)
	if testkit.Whole() {
		bound = ttl + time.Second
	}
	returned := w.movedInTime(id, killed, bound)
	if again := to.total() - int(s.items); again > returned*int(s.items/s.buckets) {
		t.Errorf("%d items were processed again, of %d buckets that were given back", again, returned)
	}
	t.Logf("%d nodes were killed, %d items were processed again", len(killed), to.total()-int(s.items))
}

// movedInTime returns how many buckets were given back, and reports those that were given back, or taken by another
// attempt, so later after the kill of their session than bound. In a proof no other session gives any back.
func (w *world) movedInTime(id events.TaskID, killed map[string]time.Time, bound time.Duration) (returned int) {
	w.Helper()
	sessions := w.sessions(id.Affinity())
	var gaveBack, took time.Duration
	free := map[uint64]time.Time{} // when the node was killed that a bucket was given back of
	for ev, err := range w.client.Ledger().History(w.within(), id) {
		w.must(err)
		b, is := ev.Body.(*events.BucketsMoved)
		if !is {
			continue
		}
		if died, moves := free[b.Started]; moves {
			delete(free, b.Started)
			took = max(took, ev.At.Time().Sub(died))
			if after := ev.At.Time().Sub(died); after > bound {
				w.Errorf("bucket %d is taken %s after its node was killed, want %s at most", b.Started, after, bound)
			}
		}
		if b.Returned == 0 {
			continue
		}
		returned++
		session := sessions[b.Attempt]
		died, dead := killed[session]
		switch after := ev.At.Time().Sub(died); {
		case !dead && testkit.Whole():
			w.Errorf("bucket %d is given back by session %q, which nobody has killed", b.Returned, session)
		case dead && after > bound:
			w.Errorf("bucket %d is given back %s after its node was killed, want %s at most", b.Returned, after, bound)
		}
		if dead {
			free[b.Returned], gaveBack = died, max(gaveBack, ev.At.Time().Sub(died))
		}
	}
	const say = "the last of %d buckets was given back %s after its node was killed, and the last one taken after %s"
	w.Logf(say, returned, gaveBack, took)
	return returned
}
