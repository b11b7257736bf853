package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/projection"
)

// The owner is cut off from the bus, everybody else is not: batches, answers, assignments and cancels go through the
// store.
func TestBus_OwnerCutOffFromItIsReachedThroughTheStore(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(engine.Policy{})
	off := &wire{cut: true}
	c.StartNode("a", with(noSlots, off.through))
	c.StartNode("b", noShards, j)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	j.next(t).succeed("1")
	want(t, f, "1")
	cancelled := j.submit(t, client, "y")
	r := j.next(t)
	if err := client.Cancel(within(t), "y", "enough"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.ctx.Done():
	case <-time.After(soon):
		t.Fatal("the cancel does not reach the attempt")
	}
	if _, err := cancelled.Wait(within(t)); !errors.Is(err, engine.ErrCancelled) {
		t.Errorf("error is %v, want %v", err, engine.ErrCancelled)
	}
}

// A node that runs tasks is cut off, the owner is not.
func TestBus_RunnerCutOffFromItIsReachedThroughTheStore(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(engine.Policy{})
	off := &wire{cut: true}
	a := c.StartNode("a", noSlots)
	c.StartNode("b", with(noShards, off.through), j)
	for range 3 {
		f := j.submit(t, a, "")
		j.next(t).succeed("1")
		want(t, f, "1")
	}
}

// Every hint is lost: who waits finds out by asking.
func TestBus_LostHintsOnlyDelay(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(engine.Policy{})
	w := &wire{hinted: func(string) fate { return drop }}
	a := c.StartNode("a", with(noSlots, w.through))
	c.StartNode("b", with(noShards, w.through), j)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	j.next(t).succeed("1")
	want(t, f, "1")
	g := j.submit(t, client, "y")
	r := j.next(t)
	if err := a.Cancel(within(t), "y", ""); err != nil {
		t.Fatal(err)
	}
	select { // the roll call brings what the hint did not
	case <-r.ctx.Done():
	case <-time.After(soon):
		t.Fatal("the cancel does not reach the attempt")
	}
	if _, err := g.Wait(within(t)); !errors.Is(err, engine.ErrCancelled) {
		t.Errorf("error is %v, want %v", err, engine.ErrCancelled)
	}
}

// An offer is filled while the letter that closes it replaces its own: the assignment has no way back, and the node gives
// the offer up. It must not leave before the owner has heard so, or a task that never ran would count as lost.
func TestDrain_AssignmentThatNeverArrivedIsReleasedNotLost(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 1})
	j := newJob(engine.Policy{})
	var losing, holding atomic.Bool
	a := c.StartNode("a", with(noSlots, (&wire{answered: only(&losing, laneOffer, drop)}).through))
	held := &wire{sent: only(&holding, laneWork, hold)}
	b := c.StartNode("b", with(noShards, held.through), j)
	awaitLetter(t, c)
	losing.Store(true)
	j.submit(t, a, "x")
	awaitTask(t, a.Client, "x", "is given to b", isRunning)
	holding.Store(true)
	session := b.SessionID()
	stopped := make(chan struct{})
	go func() {
		b.Stop()
		close(stopped)
	}()
	testcluster.Await(t, "the roll call", func() bool { return held.holding() > 0 })
	select {
	case <-stopped:
		t.Error("the node has left although its roll call is not answered")
	case <-time.After(quiet):
	}
	if got, err := c.Etcd.Get(within(t), nodeKey(session)); err != nil || len(got.Kvs) != 1 {
		t.Errorf("the session has ended although the roll call is not answered: %v, %v", got, err)
	}
	holding.Store(false)
	held.release()
	<-stopped
	j.nothing(t)
	wantHistory(t, a.Client, "x", "Created Started Released")
}

// awaitLetter waits until a standing offer lies in the mailbox of shard 0.
func awaitLetter(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	testcluster.Await(t, "a batch in the mailbox", func() bool { return c.Batches(0) == 1 })
}

// The owner has none of the behavior's code. What it must know is in the journal.
func TestOwner_WithoutTheCodeRetriesAndGivesUp(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(engine.Policy{MaxAttempts: 3, Backoff: engine.Backoff{Base: time.Millisecond, Max: time.Millisecond}})
	a := c.StartNode("a", noSlots)
	c.StartNode("b", noShards, &crashing{j})
	f := j.submit(t, a, "x")
	var failure *engine.TaskError
	if _, err := f.Wait(within(t)); !errors.As(err, &failure) || failure.Attempt != 3 {
		t.Errorf("error is %v, want the failure of attempt 3", err)
	}
	awaitTask(t, a.Client, "x", "has failed", func(task projection.Task) bool { return task.Final() && task.Failures == 3 })
	if _, err := a.SubmitRaw(within(t), "nobody-has-it", nil, engine.SubmitOptions{}); !errors.Is(err, engine.ErrUnknownBehavior) {
		t.Errorf("raw submit of a behavior that no node runs: %v, want %v", err, engine.ErrUnknownBehavior)
	}
}

// crashing is a job whose attempts panic.
type crashing struct{ *job }

func (*crashing) Run(context.Context, engine.Attempt) engine.Outcome { panic("no reason") }

// An offer has reached the owner twice, as a letter and then over the bus. What fills it is told over the bus, and lost.
// The letter is still there; sent again, it must bring the answer.
func TestBus_AssignmentLostOnItComesThroughTheStore(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	j := newJob(engine.Policy{})
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
