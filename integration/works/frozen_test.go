package works_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/task"
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

// A worker is not suspended alone: its work is, whose node then dies. Resumed, it keeps nothing back.
func TestLive_ASuspendedWorkerWhoseNodeDiesKeepsNothingBack(t *testing.T) {
	t.Parallel()
	l := liveOn(t, &live{}, testcluster.Options{TTL: 3 * time.Second}, "a", "b", "c")
	f := l.submit(l.of, steered)
	victim := l.victim()
	on := l.show(victim).Node
	at := slices.IndexFunc(l.nodes, func(n *testcluster.Node) bool { return n.Name == on })
	if at < 0 {
		t.Fatalf("the victim runs on %q", on)
	}
	l.refused(l.client.Operations().Suspend(l.within(), victim, ""))
	l.must(l.client.Operations().Suspend(l.within(), steered, ""))
	l.nodes[at].Crash()
	l.must(l.client.Operations().Resume(l.within(), steered))
	l.all(f)
	if n := l.tally.total(); n != liveItems+liveVictim%liveSize {
		t.Errorf("%d items were processed, want those of the victim twice", n)
	}
}

// refused demands the refusal of a suspend of one worker, which names the work.
func (l *live) refused(err error) {
	l.Helper()
	var state *task.StateError
	if !errors.As(err, &state) || !strings.Contains(err.Error(), "which goes along with task "+string(steered)) {
		l.Errorf("suspend of a worker: %v", err)
	}
}
