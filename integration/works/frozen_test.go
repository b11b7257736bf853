package works_test

import (
	"slices"
	"testing"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/work/progress"
)

// TestActivities 310: while one worker stands still the work is in progress, and waits without a slot.
func TestLive_AFrozenWorkerLeavesTheWorkInProgress(t *testing.T) {
	t.Parallel()
	l := newLive(t, false, false)
	f := l.submit(l.of, steered)
	victim := l.victim()
	var is progress.Work
	l.await("the work waits for it without a slot", func() bool {
		is, _ = l.progress(steered)
		return is.Waits && is.Workers.Running == 1
	})
	if p := is.Partitions[0]; is.State != progress.InProgress || p.EndedAt != 0 || p.Buckets.Done != liveItems/liveSize {
		t.Errorf("%s, %+v", is.State, p)
	}
	l.must(l.client.Operations().Cancel(l.within(), victim, ""))
	l.all(f)
}

// An operator suspends one worker, whose node then dies: its bucket is done nevertheless, and no worker is left.
func TestLive_ASuspendedWorkerWhoseNodeDiesKeepsNothingBack(t *testing.T) {
	t.Parallel()
	l := liveOn(t, &live{}, testcluster.Options{TTL: 3 * time.Second}, "a", "b", "c")
	f := l.submit(l.of, steered)
	victim := l.victim()
	l.must(l.client.Operations().Suspend(l.within(), victim, ""))
	on := l.show(victim).Node
	at := slices.IndexFunc(l.nodes, func(n *testcluster.Node) bool { return n.Name == on })
	if at < 0 {
		t.Fatalf("the victim runs on %q", on)
	}
	l.nodes[at].Crash()
	l.all(f)
	if n := l.tally.total(); n != liveItems+liveVictim%liveSize {
		t.Errorf("%d items were processed, want those of the victim twice", n)
	}
}
