package engine_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// The owner commits Started for another node and dies before its answer leaves, by whichever way. The node is
// alive, so the attempt is never lost: only the next owner's answer to the same offer brings it.
func TestAssignment_LostWithItsOwnerComesFromTheNext(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	var silent atomic.Bool
	unresponsive := &wire{answered: only(&silent, laneOffer, drop)}
	a := c.StartNode("a", with(noSlots, unresponsive.through))
	b := c.StartNode("b", noShards, j)
	silent.Store(true)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	task := awaitTask(t, client.Client, "x", "is assigned", isRunning)
	j.nothing(t)
	a.Kill()
	c.StartNode("d", noSlots)
	r := j.next(t)
	if r.Token.Ref != task.Details.Started || task.Session != b.SessionID() {
		t.Errorf("attempt %s runs, want %d on %s", r.Token, task.Details.Started, task.Session)
	}
	r.succeed("1")
	want(t, f, "1")
	wantHistory(t, client.Client, "x", "Created Started Succeeded")
}

// Every message comes twice, and many come once more through the store.
func TestAssignment_DoubledIsMadeOnce(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	everything := func(string) fate { return twice }
	w := &wire{sent: everything, answered: everything, heard: everything, hinted: everything}
	a := c.StartNode("a", with(noSlots, w.through))
	c.StartNode("b", with(noShards, w.through), j)
	const tasks = 50
	var futures []*engine.Future
	for i := range tasks {
		futures = append(futures, j.submit(t, a, events.TaskID(fmt.Sprint("x", i))))
	}
	for range tasks {
		j.next(t).succeed("1")
	}
	for i, f := range futures {
		want(t, f, "1")
		wantHistory(t, a.Client, events.TaskID(fmt.Sprint("x", i)), "Created Started Succeeded")
	}
	if n := j.count.Load(); n != tasks {
		t.Errorf("%d attempts of %d tasks", n, tasks)
	}
}

// The answer is held up while the node calls its roll again and again. No node has died, so the task must not run
// twice.
func TestAssignment_SlowAnswerIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	var slow, counting atomic.Bool
	var rolls atomic.Int64
	holding := &wire{answered: only(&slow, laneOffer, hold)}
	listening := &wire{sent: func(lane string) fate {
		if counting.Load() && lane == laneWork {
			rolls.Add(1)
		}
		return pass
	}}
	a := c.StartNode("a", with(noSlots, holding.through))
	c.StartNode("b", with(noShards, listening.through), j)
	first := j.submit(t, a, "x/1") // keeps the node calling its roll in this shard
	busy := j.next(t)
	slow.Store(true)
	second := j.submit(t, a, "x/2")
	awaitTask(t, a.Client, "x/2", "is assigned", isRunning)
	counting.Store(true)
	testcluster.Await(t, "two reconciliations", func() bool { return rolls.Load() >= 2 })
	j.nothing(t)
	slow.Store(false)
	holding.release()
	j.next(t).succeed("2")
	busy.succeed("1")
	want(t, first, "1")
	want(t, second, "2")
	wantHistory(t, a.Client, "x/2", "Created Started Succeeded")
	j.nothing(t)
}
