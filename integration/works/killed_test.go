package works_test

import (
	"context"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/repeat"
	"taskledger/internal/testcluster"
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
		items:   int64(repeat.Times(1800, 20_000)),
		buckets: int64(repeat.Times(36, 200)),
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
	var killed []time.Time
	mayKill := func() bool {
		switch {
		case committed == 0:
			return false
		case repeat.Whole():
			return len(killed) == 0 || time.Since(killed[len(killed)-1]) >= every
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
			w.nodes[victim].Crash()
			killed = append(killed, time.Now())
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
	w.returnedInTime(id, killed, ttl)
	t.Logf("%d nodes were killed, %d items were processed again", len(killed), to.total()-int(s.items))
}

// returnedInTime reports buckets that were given back later after a kill than ten times the time that the end of a
// session and a second take.
func (w *world) returnedInTime(id events.TaskID, killed []time.Time, ttl time.Duration) {
	w.Helper()
	var latest time.Duration
	for ev, err := range w.client.Ledger().History(w.within(), id) {
		w.must(err)
		b, is := ev.Body.(*events.BucketsMoved)
		if !is || b.Returned == 0 {
			continue
		}
		at, before := ev.At.Time(), time.Time{}
		for _, kill := range killed {
			if kill.Before(at) {
				before = kill
			}
		}
		latest = max(latest, at.Sub(before))
	}
	if latest > 10*(ttl+time.Second) {
		w.Errorf("a bucket of a killed node was given back %s later", latest)
	}
	w.Logf("the last bucket of a killed node was given back %s later", latest)
}
