package engine_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// watched is a store whose membership watch a test can silence, and whose reads it counts.
type watched struct {
	store.Store
	silent atomic.Bool
	reads  atomic.Int64 // that have ended
}

func (s *watched) under(c *cfg) {
	s.Store = c.Store
	c.Store = s
}

func (s *watched) ReadMembers(ctx context.Context) (store.Membership, error) {
	defer s.reads.Add(1)
	return s.Store.ReadMembers(ctx)
}

func (s *watched) WatchMembers(ctx context.Context) iter.Seq2[store.Membership, error] {
	return func(yield func(store.Membership, error) bool) {
		for m, err := range s.Store.WatchMembers(ctx) {
			if !s.silent.Load() && !yield(m, err) {
				return
			}
		}
	}
}

// A node that hears of no change of the membership still finds out: watches only hasten.
func TestMembers_ChangesThatAWatchMissesAreFoundByReading(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	s := &watched{}
	a := c.StartNode("a", nil, j)
	c.StartNode("b", s.under, j)
	f := j.submit(t, a, "x")
	r := j.next(t)
	s.silent.Store(true)
	a.Kill()
	again := j.next(t)
	if again.Number != 2 || r.Number != 1 {
		t.Errorf("attempt %d after %d, want 2 after 1", again.Number, r.Number)
	}
	again.succeed("1")
	client := c.StartClient("caller", nil)
	want(t, client.Attach("x"), "1")
	if _, err := f.Wait(within(t)); !errors.Is(err, task.ErrClosed) { // nobody asked before its node was gone
		t.Errorf("error is %v, want %v", err, task.ErrClosed)
	}
}

// A node key is written again and again: with the load, and where the bus does not tell it, with the clock.
func TestNodes_JoinedStaysWithTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, false)
		c.start("a", 0, nil, newJob(task.Policy{})).ready(t)
		c.start("b", 0, nil, newJob(task.Policy{})).ready(t)
		var first []store.NodeInfo
		for range 2 {
			nodes, err := c.nodes[0].Operations().Nodes(within(t))
			if err != nil || len(nodes) != 2 {
				t.Fatalf("%d nodes, %v", len(nodes), err)
			}
			for i, n := range first {
				if n.Joined != nodes[i].Joined {
					t.Errorf("%s joined at %d, and a minute later at %d", n.Name, n.Joined, nodes[i].Joined)
				}
			}
			first = nodes
			time.Sleep(time.Minute)
		}
	})
}
