package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/ring"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// The word that a shard was handed over never arrives. The owner key says so, too, and the shard must not be
// without an owner for as long as the answer is waited for, which is a TTL.
func TestHandOver_LostAnswerLeavesNoShardUnserved(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{TTL: time.Minute, Shards: 2})
	var losing atomic.Bool
	c.StartNode("a", with(noSlots, (&wire{answered: only(&losing, laneQuery, drop)}).through, func(cfg *cfg) {
		cfg.Store = &handingStore{cfg.Store, &losing}
	}))
	c.StartNode("b", noSlots)
	c.AwaitSpread()
	if !losing.Swap(false) {
		t.Error("the shard was not handed over")
	}
}

// handingStore notes when a shard has been handed over.
type handingStore struct {
	store.Store
	done *atomic.Bool
}

func (s *handingStore) HandOver(ctx context.Context, o store.Ownership, target string) error {
	err := s.Store.HandOver(ctx, o, target)
	if err == nil {
		s.done.Store(true)
	}
	return err
}

// mistaken is a store whose memberships show every node of a name as one that is draining.
type mistaken struct {
	store.Store
	drains string
	loads  atomic.Int64 // shards that were read, ever
}

func (s *mistaken) wrong(v store.Membership) store.Membership {
	nodes := map[string]store.NodeInfo{}
	for id, n := range v.Nodes {
		n.Draining = n.Draining || n.Name == s.drains
		nodes[id] = n
	}
	v.Nodes = nodes
	return v
}

func (s *mistaken) ReadMembers(ctx context.Context) (store.Membership, error) {
	v, err := s.Store.ReadMembers(ctx)
	return s.wrong(v), err
}

func (s *mistaken) WatchMembers(ctx context.Context) iter.Seq2[store.Membership, error] {
	return func(yield func(store.Membership, error) bool) {
		for v, err := range s.Store.WatchMembers(ctx) {
			if !yield(s.wrong(v), err) {
				return
			}
		}
	}
}

func (s *mistaken) Pointer(ctx context.Context, shard int) (store.SnapshotPointer, error) {
	s.loads.Add(1)
	return s.Store.Pointer(ctx, shard)
}

// A node asks for shards that their owners keep, since they see other members: it pauses, and does not read them
// all the time.
func TestHandOver_AShardThatItsOwnerKeepsIsAskedForAfterPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, true)
		s := &mistaken{drains: "c"}
		for _, name := range []string{"a", "b", "c"} {
			c.start(name, 0, func(c *cfg) {
				if name == "b" {
					s.Store, c.Store = c.Store, s
				}
			}).ready(t)
		}
		c.spread(3)
		time.Sleep(time.Minute)
		before := s.loads.Load()
		time.Sleep(time.Minute)
		const most = modelledShards * 60 / 5 // as often as the longest pause allows
		if asked := s.loads.Load() - before; asked == 0 || asked > most {
			t.Errorf("shards were read %d times in a minute, want some and at most %d", asked, most)
		}
	})
}

// A shard is handed over while a snapshot of it is being taken: that is given up, and its parts come too late.
func TestHandOver_DuringASnapshot(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	w := &worker{attempts: map[events.TaskID]int{}}
	s := &lateParts{gate: newGate(t), late: make(chan error, 1)}
	a := c.StartNode("a", func(c *cfg) { s.Store = c.Store; c.Store, c.Trimming = small{s}, engine.TrimAll }, w)
	b := c.StartNode("b", func(c *cfg) { c.Store, c.Trimming = small{c.Store}, engine.TrimAll }, w)
	if infos, err := a.Operations().Shards(within(t)); err != nil || infos[0].Owner != a.SessionID() {
		t.Fatalf("the first node has not taken the shard: %+v, %v", infos, err)
	}
	fill(t, a.Client, w, "x", 700)
	s.await(t)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		a.Stop()
	}()
	testcluster.Await(t, "the hand-over", func() bool {
		infos, err := b.Operations().Shards(within(t))
		return err == nil && infos[0].Owner == b.SessionID()
	})
	s.release()
	if err := <-s.late; !errors.Is(err, store.ErrFenced) {
		t.Errorf("the late part: %v, want it fenced", err)
	}
	<-stopped
	fill(t, b.Client, w, "y", 700)
	wantServed(t, b.Node)
}

// slowLoad is a store that is held up in the middle of reading a shard.
type slowLoad struct {
	store.Store
	parts, journal *gate // nil: not there
}

func (s *slowLoad) Parts(ctx context.Context, shard int, of store.SnapshotInfo) iter.Seq2[[]byte, error] {
	if s.parts != nil {
		s.parts.pass()
	}
	return s.Store.Parts(ctx, shard, of)
}

func (s *slowLoad) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	if s.journal != nil {
		s.journal.pass()
	}
	return s.Store.Read(ctx, shard, from)
}

// While the node that asks for a shard reads it, its owner publishes two more snapshots and trims past what is
// being read.
func TestHandOver_LoadsAfreshWhatWasTrimmedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"parts", "journal"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			c := testcluster.New(t, testcluster.Options{Shards: 1})
			w := &worker{attempts: map[events.TaskID]int{}}
			var store store.Store
			dropping := func(c *cfg) { store = c.Store; c.Store, c.Trimming = small{c.Store}, engine.TrimAll }
			a := c.StartNode("a", dropping, w)
			trimPast := func(prefix string) {
				infos, err := a.Operations().Shards(within(t))
				if err != nil {
					t.Fatal(err)
				}
				for round, end := 0, time.Now().Add(soon); time.Now().Before(end); round++ { // trims come some time after
					fill(t, a.Client, w, fmt.Sprint(prefix, round, "/"), 300)
					if first, err := store.First(within(t), 0); err != nil {
						t.Fatal(err)
					} else if first > max(infos[0].Entries, 1) {
						return
					}
				}
				t.Fatal("the journal is not trimmed")
			}
			trimPast("before")
			g := newGate(t)
			slow := &slowLoad{}
			if at == "parts" {
				slow.parts = g
			} else {
				slow.journal = g
			}
			preferred := 'b'
			for ring.Place(1, []string{"a", string(preferred)})[0][0] == "a" {
				preferred++
			}
			b := c.StartNode(string(preferred), func(c *cfg) { slow.Store = small{c.Store}; c.Store, c.Trimming = slow, engine.TrimAll }, w)
			g.await(t)
			trimPast("meanwhile")
			g.release()
			testcluster.Await(t, "the hand-over", func() bool {
				infos, err := b.Operations().Shards(within(t))
				return err == nil && infos[0].Owner == b.SessionID()
			})
			wantServed(t, b.Node)
		})
	}
}

// fillingStore makes etcd full when a shard is to be handed over.
type fillingStore struct {
	store.Store
	shard int // -1: any
	fill  func()
}

func (s *fillingStore) HandOver(ctx context.Context, o store.Ownership, target string) error {
	if s.shard == -1 || s.shard == o.Shard {
		s.fill()
	}
	return s.Store.HandOver(ctx, o, target)
}

// Owners that are asked for their shards by whoever should have them now cannot hand them over.
func TestHandOver_WhileEtcdIsFullNoOwnerFallsSilent(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprint("full before a node dies: ", early), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, true)
				var armed, filled atomic.Bool
				fill := func() {
					if armed.Load() && filled.CompareAndSwap(false, true) {
						c.etcd.SetFull(true)
					}
				}
				for _, name := range []string{"a", "b", "c", "d"} {
					c.start(name, 0, func(c *cfg) { c.Store = &fillingStore{c.Store, -1, fill} }).ready(t)
				}
				c.spread(4)
				infos, err := c.nodes[0].Operations().Shards(within(t))
				if err != nil {
					t.Fatal(err)
				}
				gone := c.nodes[3].SessionID()
				armed.Store(true)
				if early {
					fill()
					time.Sleep(2 * time.Second)
				}
				c.nodes[3].crash()
				c.nodes = c.nodes[:3]
				for began := time.Now(); !filled.Load(); time.Sleep(10 * time.Millisecond) {
					if time.Since(began) > time.Minute {
						t.Fatal("nobody hands a shard over")
					}
				}
				for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(time.Second) {
					for shard, info := range infos {
						if info.Owner == gone {
							continue
						}
						for _, n := range c.nodes {
							asked := time.Now()
							_, err := n.GetLinear(within(t), idIn(shard, modelledShards))
							told := errors.Is(err, task.ErrNotFound) || asked.Sub(began) < 2*time.Second && err != nil && strings.Contains(err.Error(), "compact, defragment")
							if took := time.Since(asked); !told || took > time.Second {
								t.Errorf("shard %d answers %s after the first try, to %s: %v, after %s", shard, time.Since(began), n.name, err, took)
							}
						}
					}
				}
				c.etcd.SetFull(false)
				c.spread(3)
			})
		})
	}
}
