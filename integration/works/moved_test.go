package works_test

import (
	"context"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/task"
)

// The times are those of the journal: a worker of the killed node has ended a bucket every few milliseconds, so its
// last one tells when the node died. In a proof the bound is the promised one, else other tests may run beside this
// one.
func TestWork_BucketsOfAKilledNodeMoveWithinTheEndOfItsSessionAndASecond(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	slack := time.Duration(10)
	if testkit.Whole() {
		slack = 1
	}
	bound := slack * (ttl + time.Second)
	s := shape{
		id:      "moved",
		items:   4000,
		buckets: 2000,
		workers: 6,
		limit:   -1,
	}
	to := newTally()
	w := &steer{shape: s, tally: to}
	process := func(ctx context.Context, _ int64) error { return short(ctx, 10*time.Millisecond) }
	w.of = s.define("client", to, process)
	w.world = newWorld(t, testcluster.Options{TTL: ttl}, 2, func(node string) []task.Behavior {
		return []task.Behavior{s.define(node, to, process)}
	}, "a", "b", "c")
	w.submit(w.of, steered).Close()
	var session string
	w.await("a node has two buckets, and not the work's own task", func() bool {
		is, planned := w.progress(steered)
		if !planned || is.Items.Done < 100 || len(is.Open) < 6 {
			return false
		}
		for i, n := range w.nodes {
			for _, at := range is.Workers.Nodes {
				if at.Node == n.Name && at.Buckets == 2 && w.show(steered).Session != at.Session {
					session = at.Session
					w.nodes[i].Crash()
					return true
				}
			}
		}
		return false
	})
	died, returned, taken := w.journey(session)
	w.await("its buckets are taken by others", func() bool {
		died, returned, taken = w.journey(session)
		return len(returned) == 2 && len(taken) == 2
	})
	for bucket, at := range returned {
		if took := at.Sub(died); took < 0 {
			t.Errorf("bucket %d is given back %s after the last sign of its node", bucket, took)
		}
		if took := taken[bucket].Sub(at); took > slack*time.Second || took < 0 {
			t.Errorf("bucket %d is taken %s after it was given back, want %s at most", bucket, took, slack*time.Second)
		}
		if took := taken[bucket].Sub(died); took > bound {
			t.Errorf("bucket %d is taken %s after the last sign of its node, want %s at most", bucket, took, bound)
		}
		t.Logf("bucket %d is given back after %s, and taken %s later", bucket, at.Sub(died), taken[bucket].Sub(at))
	}
	w.must(w.client.Operations().Cancel(w.within(), steered, ""))
	w.workersEnded(steered)
}

// sessions returns the session of each attempt of the task that an affinity has, and of its workers.
func (w *world) sessions(affinity string) map[events.Ref]string {
	w.Helper()
	all := map[events.Ref]string{}
	for t, err := range w.client.List(w.within(), task.Filter{Affinity: affinity, Limit: 100}) {
		w.must(err)
		for ev, err := range w.client.Ledger().History(w.within(), t.ID) {
			w.must(err)
			if b, is := ev.Body.(*events.Started); is {
				all[ev.Position.Ref] = b.Node
			}
		}
	}
	return all
}

// journey returns when a session has last moved a bucket, when those that it had then were given back, and when they
// were taken again, by the journal.
func (w *world) journey(session string) (died time.Time, returned, taken map[uint64]time.Time) {
	w.Helper()
	sessions := w.sessions(steered.Affinity())
	returned, taken = map[uint64]time.Time{}, map[uint64]time.Time{}
	for ev, err := range w.client.Ledger().History(w.within(), steered) {
		w.must(err)
		b, is := ev.Body.(*events.BucketsMoved)
		if !is {
			continue
		}
		of := sessions[b.Attempt] == session
		if of && b.Ended != 0 {
			died = ev.At.Time()
		}
		if of && b.Returned != 0 {
			returned[b.Returned] = ev.At.Time()
		}
		if _, moved := returned[b.Started]; moved && !of {
			taken[b.Started] = ev.At.Time()
		}
	}
	return died, returned, taken
}

// An attempt adds one event of buckets, with its first one, and those of its task: it is created, starts, and ends.
func TestWork_OneEventABucketInTheJournalOfAWholeEngine(t *testing.T) {
	t.Parallel()
	s := shape{
		id:      "steady",
		items:   600,
		buckets: 300,
		workers: 4,
		threads: 2,
		limit:   -1,
	}
	w := &steer{shape: s, tally: newTally()}
	process := func(context.Context, int64) error { return nil }
	w.of = s.define("client", w.tally, process)
	w.world = newWorld(t, testcluster.Options{}, 0, func(node string) []task.Behavior {
		return []task.Behavior{s.define(node, w.tally, process)}
	}, "a", "b")
	_, err := w.submit(w.of, steered).Wait(w.within())
	w.must(err)
	w.workersEnded(steered)
	moves, attempts, others := 0, 0, 0
	for t, err := range w.client.List(w.within(), task.Filter{Affinity: steered.Affinity(), Limit: 100}) {
		w.must(err)
		for ev, err := range w.client.Ledger().History(w.within(), t.ID) {
			w.must(err)
			switch ev.Body.(type) {
			case *events.BucketsMoved:
				moves++
			case *events.Started:
				attempts++
			default:
				others++
			}
		}
	}
	if moves < int(s.buckets) || moves > int(s.buckets)+attempts {
		t.Errorf("%d events of %d buckets by %d attempts, want one a bucket, and one an attempt at most", moves, s.buckets,
			attempts)
	}
	if most := 10 + 3*attempts; others > most {
		t.Errorf("%d events beside those of buckets, of %d attempts, want %d at most", others, attempts, most)
	}
}
