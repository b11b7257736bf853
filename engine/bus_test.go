package engine_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/task"
)

// The owner is cut off from the bus, everybody else is not: batches, answers, assignments and cancels go through the
// store.
func TestBus_OwnerCutOffFromItIsReachedThroughTheStore(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	off := &wire{cut: true}
	c.StartNode("a", with(noSlots, off.through))
	c.StartNode("b", noShards, j)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	j.next(t).succeed("1")
	want(t, f, "1")
	cancelled := j.submit(t, client, "y")
	r := j.next(t)
	if err := client.Operations().Cancel(within(t), "y", "enough"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.ctx.Done():
	case <-time.After(soon):
		t.Fatal("the cancel does not reach the attempt")
	}
	if _, err := cancelled.Wait(within(t)); !errors.Is(err, task.ErrCancelled) {
		t.Errorf("error is %v, want %v", err, task.ErrCancelled)
	}
}

// A node that runs tasks is cut off, the owner is not.
func TestBus_RunnerCutOffFromItIsReachedThroughTheStore(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	off := &wire{cut: true}
	a := c.StartNode("a", noSlots)
	c.StartNode("b", with(noShards, off.through), j)
	for range 3 {
		f := j.submit(t, a, "")
		j.next(t).succeed("1")
		want(t, f, "1")
	}
}

// Every hint is lost: whoever waits finds out by asking.
func TestBus_LostHintsOnlyDelay(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	w := &wire{hinted: func(string) fate { return drop }}
	a := c.StartNode("a", with(noSlots, w.through))
	c.StartNode("b", with(noShards, w.through), j)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	j.next(t).succeed("1")
	want(t, f, "1")
	g := j.submit(t, client, "y")
	r := j.next(t)
	if err := a.Operations().Cancel(within(t), "y", ""); err != nil {
		t.Fatal(err)
	}
	select { // the reconciliation brings what the hint did not
	case <-r.ctx.Done():
	case <-time.After(soon):
		t.Fatal("the cancel does not reach the attempt")
	}
	if _, err := g.Wait(within(t)); !errors.Is(err, task.ErrCancelled) {
		t.Errorf("error is %v, want %v", err, task.ErrCancelled)
	}
}

// An offer has reached the owner twice, as a letter and then over the bus. What fills it is told over the bus, and
// lost. The letter is still there; sent again, it must bring the answer.
func TestBus_AssignmentLostOnItComesThroughTheStore(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	j := newJob(task.Policy{})
	var posted, losing atomic.Bool
	parked := make(chan struct{}, 1000)
	c.StartNode("a", with(noSlots, (&wire{busAnswered: only(&losing, laneOffer, drop)}).through))
	c.StartNode("b", with(noShards, (&wire{
		busSent: func(lane string) fate {
			if lane == laneOffer && !posted.Load() {
				return drop
			}
			return pass
		},
		heard: func(lane string) fate {
			if lane == laneOffer {
				parked <- struct{}{}
			}
			return pass
		}}).through), j)
	awaitLetter(t, c)
	posted.Store(true)
	testcluster.Await(t, "the acknowledgement over the bus", func() bool { return len(parked) > 0 })
	losing.Store(true)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	j.next(t).succeed("1")
	want(t, f, "1")
}
