package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// A node that stops in order ends its functions, gives them the ten seconds that they are promised, and loses no
// attempt: not even one whose function returns at the end of them, or never. It takes no longer than whoever stops
// nodes is told.
func TestDrain_WhatReturnsLateOrNeverIsReleasedInTime(t *testing.T) {
	for _, bus := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, job := newModelled(t, bus), newJob(task.Policy{})
			job.stubborn = true
			const grace, most = 3 * time.Second, 3*time.Second + 10*time.Second + 2*time.Second
			a := c.start("a", 0, func(c *cfg) { c.Grace = grace }, job)
			a.ready(t)
			b := c.start("b", 0, func(c *cfg) { c.Slots = -1 }, job)
			b.ready(t)
			delays := map[events.TaskID]time.Duration{"soon": 0, "late": 9 * time.Second, "never": -1}
			ended, release := make(chan time.Duration, 1), make(chan struct{})
			defer close(release)
			for id := range delays {
				job.submit(t, a, id).Close()
			}
			began := time.Now()
			for range delays {
				r := job.next(t)
				go func() {
					<-r.ctx.Done()
					if after := time.Since(began); after < grace {
						t.Errorf("the context of %s ended after %s", r.Task, after)
					}
					if delay := delays[r.Task]; delay >= 0 {
						time.Sleep(delay)
					} else {
						<-release
					}
					r.ends <- task.Outcome{Err: &events.Error{Code: "x", Message: "stopped"}}
				}()
			}
			a.stop()
			go func() {
				a.end()
				ended <- time.Since(began)
			}()
			if took := <-ended; took < grace || took > most {
				t.Errorf("the node stopped after %s, want %s at most", took, most)
			}
			c.nodes = c.nodes[1:]
			for id := range delays {
				wantHistory(t, b.Client, id, "Created Started Released")
			}
		})
	}
}

// A failure about which the behavior has not decided when its node stops is no loss: nothing has been reported.
func TestDrain_AFailureThatIsNotDecidedInTimeIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, started := newModelled(t, true), make(chan struct{})
		b := behaviors.Define("b", &behaviors.Rules[int, string]{
			AfterFailure: func(int, behaviors.Failure, time.Time) time.Time {
				time.Sleep(8 * time.Second)
				return time.Time{}
			},
		})
		panics := b.Bind(func(ctx context.Context, _ int) (string, error) {
			close(started)
			<-ctx.Done()
			time.Sleep(5 * time.Second)
			panic("boom")
		})
		a := c.start("a", 0, func(c *cfg) { c.Grace = time.Second }, panics)
		a.ready(t)
		other := c.start("b", 0, func(c *cfg) { c.Slots = -1 })
		other.ready(t)
		f, err := b.Submit(within(t), a, 1)
		if err != nil {
			t.Fatal(err)
		}
		id := f.ID()
		f.Close()
		<-started
		a.stop()
		a.end()
		c.nodes = c.nodes[1:]
		wantHistory(t, other.Client, id, "Created Started Released")
		time.Sleep(10 * time.Second) // the rule returns after the node has stopped
	})
}

// An offer is filled while the letter that closes it replaces its own: the assignment has no way back, and the node
// gives the offer up. It must not leave before the owner has heard so, or a task that never ran would count as
// lost.
func TestDrain_AssignmentThatNeverArrivedIsReleasedNotLost(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 1})
	j := newJob(task.Policy{})
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
	testcluster.Await(t, "the reconciliation", func() bool { return held.holding() > 0 })
	select {
	case <-stopped:
		t.Error("the node has left although its reconciliation is not answered")
	case <-time.After(quiet):
	}
	if got, err := c.Etcd.Get(within(t), nodeKey(session)); err != nil || len(got.Kvs) != 1 {
		t.Errorf("the session has ended although the reconciliation is not answered: %v, %v", got, err)
	}
	holding.Store(false)
	held.release()
	<-stopped
	j.nothing(t)
	wantHistory(t, a.Client, "x", "Created Started Released")
}

// gatedUpdates holds the first update of a node key back until another one has been made.
type gatedUpdates struct {
	store.Store
	calls atomic.Int64
	made  chan struct{}
}

func (s *gatedUpdates) Update(ctx context.Context, session store.Session, info func() store.NodeInfo) error {
	if s.calls.Add(1) == 1 {
		select {
		case <-s.made:
		case <-ctx.Done():
			return ctx.Err()
		}
		return s.Store.Update(ctx, session, info)
	}
	err := s.Store.Update(ctx, session, info)
	if s.calls.Load() == 2 {
		close(s.made)
	}
	return err
}

// A load that is being told while a node begins to drain does not say that it does not.
func TestDrain_IsNotTakenBackByALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, false)
		job := newJob(task.Policy{})
		c.start("a", 0, noShards).ready(t)
		gate := &gatedUpdates{made: make(chan struct{})}
		b := c.start("b", 0, func(c *cfg) {
			gate.Store, c.Store, c.Grace = c.Store, gate, 10*time.Second
		}, job)
		b.ready(t)
		job.submit(t, b, "x").Close()
		r := job.next(t)
		time.Sleep(time.Second)
		if gate.calls.Load() != 1 {
			t.Fatalf("%d updates of the node key, want one under way", gate.calls.Load())
		}
		b.stop()
		time.Sleep(5 * time.Second)
		nodes, err := c.nodes[0].Operations().Nodes(within(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			if n.Name == "b" && !n.Draining {
				t.Error("it drains, and its key says that it does not")
			}
		}
		r.succeed("1")
	})
}

func TestDrain_EndsWhileTheStoreIsFull(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1, Quota: 16 << 20})
	n := c.StartNode("a", nil, newJob(task.Policy{}))
	fillStore(t, c)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("the node does not stop")
		emptyStore(t, c)
		<-stopped
	}
}

// givingAway counts the shards that a node hands over.
type givingAway struct {
	store.Store
	shards atomic.Int32
}

func (g *givingAway) HandOver(ctx context.Context, o store.Ownership, target string) error {
	g.shards.Add(1)
	return g.Store.HandOver(ctx, o, target)
}

// laterRelease is the store of a node whose program folds by rules that others do not have.
type laterRelease struct{ store.Store }

func (s laterRelease) Join(ctx context.Context, info store.NodeInfo, ttl time.Duration) (store.Session, error) {
	info.Reads.Rules++
	return s.Store.Join(ctx, info, ttl)
}

func (s laterRelease) Update(ctx context.Context, session store.Session, info func() store.NodeInfo) error {
	return s.Store.Update(ctx, session, func() store.NodeInfo {
		later := info()
		later.Reads.Rules++
		return later
	})
}

// What the node of a later release writes could not be read as long as the node that leaves is present.
func TestDrain_LeavesItsShardsToTheNodeOfALaterReleaseAndHandsThemNotOver(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 4})
	given := &givingAway{}
	old := c.StartNode("old", func(c *engine.NodeConfig) { given.Store, c.Store = c.Store, given })
	c.StartNode("later", func(c *engine.NodeConfig) { c.Store = laterRelease{c.Store} })
	old.Stop()
	if n := given.shards.Load(); n != 0 {
		t.Errorf("%d shards were handed over", n)
	}
	c.AwaitSpread()
}
