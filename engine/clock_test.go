package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/modeletcd"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

// Ten minutes without NATS, or after NATS was away and is back, and nothing to do: nobody takes a clock for wrong,
// no shard moves, and who dies then is replaced as fast as ever.
func TestClock_QuietClusterDoubtsNobody(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	for name, withBus := range map[string]bool{"no NATS": false, "NATS was away": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, withBus)
				job := newJob(task.Policy{})
				for _, name := range []string{"a", "b", "c"} {
					c.start(name, 0, func(c *cfg) { c.Slots = 2 }, job).ready(t)
				}
				c.spread(3)
				if withBus {
					c.bus.set(false)
				}
				c.backlog(job)
				if withBus {
					c.bus.set(true)
				}
				alarms, serving := c.totals()
				revision := c.etcd.Revision()
				time.Sleep(10 * time.Minute)
				if a, s := c.totals(); a != alarms || s != serving {
					t.Errorf("ten quiet minutes: %d alarms, %d shards served anew", a-alarms, s-serving)
				}
				told := 0
				for _, change := range c.etcd.History(revision + 1) {
					if strings.HasPrefix(change.Key, "taskledger/node/") {
						told++
					}
				}
				if often := 3 * 10 * 60 / 20; withBus && told > 0 || told > often+3 {
					t.Errorf("ten quiet minutes: node keys were written %d times", told)
				}
				c.wantRunAgainAfterCrash(job)
			})
		})
	}
}

// backlog lets many more tasks wait than there are slots, for a few seconds, and ends them all.
func (c *modelled) backlog(j *job) {
	c.Helper()
	var futures []*engine.Future
	for i := range 60 {
		futures = append(futures, j.submit(c.T, c.nodes[i%3], events.TaskID(fmt.Sprint("backlog-", i))))
	}
	for range futures {
		r := j.next(c.T)
		time.Sleep(100 * time.Millisecond)
		r.succeed("1")
	}
	for _, f := range futures {
		want(c.T, f, "1")
	}
}

// wantRunAgainAfterCrash kills the node that runs a task, which must run again within the TTL and a second.
func (c *modelled) wantRunAgainAfterCrash(j *job) {
	c.Helper()
	f := j.submit(c.T, c.nodes[0], "killed")
	r := j.next(c.T)
	task, err := c.nodes[0].Get(within(c.T), "killed")
	if err != nil {
		c.Fatal(err)
	}
	for i, n := range c.nodes {
		if n.SessionID() == task.Session {
			n.crash()
			c.nodes = append(c.nodes[:i:i], c.nodes[i+1:]...)
			break
		}
	}
	died := time.Now()
	again := j.next(c.T)
	if took := time.Since(died); again.Task != r.Task || again.Number != 2 || took > modelledTTL+time.Second {
		c.Errorf("attempt %d of %s began %s after the crash", again.Number, again.Task, took)
	}
	again.succeed("2")
	want(c.T, c.nodes[0].Attach("killed"), "2")
	f.Close()
}

// A clock that is an hour off is found, and that node gives its shards away, also where nothing but keys tells of
// clocks and nothing is to be done; when it is right again it gets them back.
func TestClock_AnHourOffIsFound(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	for name, c := range map[string]struct {
		bus  bool
		step time.Duration
	}{"ahead, no NATS": {false, time.Hour}, "behind, no NATS": {false, -time.Hour}, "ahead": {true, time.Hour}, "behind": {true, -time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newModelled(t, c.bus)
				for _, name := range []string{"a", "b", "c"} {
					cluster.start(name, 0, nil, newJob(task.Policy{})).ready(t)
				}
				cluster.spread(3)
				time.Sleep(5 * time.Minute)
				wrong := cluster.nodes[2]
				wrong.ahead.Store(int64(c.step))
				time.Sleep(10 * time.Second)
				if shares := cluster.shares(); shares["c"] != 0 || shares["a"]+shares["b"] != modelledShards {
					t.Errorf("10s after the clock of c went wrong the shards are spread as %v", shares)
				}
				if alarms, _ := cluster.totals(); alarms != 1 || wrong.alarms.Load() != 1 {
					t.Errorf("%d alarms, %d of them of the node whose clock is wrong", alarms, wrong.alarms.Load())
				}
				wrong.ahead.Store(0)
				cluster.spread(3)
			})
		})
	}
}

// A process whose clock is wrong from the beginning, which nobody else has noticed yet, takes no shard, also after its
// session has ended under it.
func TestClock_WrongAtTheStartTakesNoShard(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	for _, withBus := range []bool{false, true} {
		t.Run(fmt.Sprintf("bus %v", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, withBus)
				c.start("x", 0, noShards).ready(t)
				c.start("y", 0, noShards).ready(t)
				time.Sleep(time.Minute)
				wrong := c.start("wrong", -time.Hour, nil)
				time.Sleep(time.Minute)
				for range 3 {
					c.endSession(wrong)
					time.Sleep(30 * time.Second)
				}
				if n := wrong.serving.Load(); n != 0 {
					t.Errorf("it has served %d shards", n)
				}
				c.start("right", 0, nil).ready(t)
				if shares := c.shares(); shares["right"] != modelledShards {
					t.Errorf("shards are spread as %v", shares)
				}
			})
		})
	}
}

// A session that begins late, in a store that is slow for all, takes no shard before it has heard the others either.
func TestClock_WrongAtALateStartTakesNoShard(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, false)
		for _, name := range []string{"x", "y"} {
			c.start(name, 0, func(c *cfg) { noShards(c); c.Store = slowMember{c.Store, 0, time.Second} }).ready(t)
		}
		time.Sleep(time.Minute)
		wrong := c.start("wrong", -time.Hour, func(c *cfg) { c.Store = slowMember{c.Store, 5 * time.Second, 0} })
		time.Sleep(time.Minute)
		if n := wrong.serving.Load(); n != 0 {
			t.Errorf("it has served %d shards", n)
		}
	})
}

// A node reads its clock anew for every copy of an update. So a full store that has room again never takes an old
// reading: no clock counts as wrong, and no shard moves. The store is slow, so that what is told first is not
// replaced soon.
func TestClock_IsNotToldLateByAFullStore(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, false)
		const slow = modeletcd.Slow(500 * time.Millisecond)
		c.ways = map[string]modeletcd.Transport{"a": slow, "b": slow, "c": slow}
		for _, name := range []string{"a", "b", "c"} {
			c.start(name, 0, nil, newJob(task.Policy{})).ready(t)
		}
		c.spread(3)
		time.Sleep(time.Minute) // a new owner reads its shard before it says that it serves it
		_, serving := c.totals()
		for range 5 {
			c.etcd.SetFull(true)
			time.Sleep(3 * time.Minute)
			c.etcd.SetFull(false)
			time.Sleep(30 * time.Second)
		}
		for _, n := range c.nodes {
			if changes := n.doubts.Load(); changes != 0 {
				t.Errorf("%s has changed its mind on its clock %d times", n.name, changes)
			}
		}
		if _, s := c.totals(); s != serving {
			t.Errorf("%d shards are served anew", s-serving)
		}
	})
}

// slowMember is a store that takes long to join, and to tell others.
type slowMember struct {
	store.Store
	join, tell time.Duration
}

// Join implements store.Store.
func (s slowMember) Join(ctx context.Context, info store.NodeInfo, ttl time.Duration) (store.Session, error) {
	after(ctx, s.join)
	return s.Store.Join(ctx, info, ttl)
}

// Update implements store.Store.
func (s slowMember) Update(ctx context.Context, of store.Session, info func() store.NodeInfo) error {
	after(ctx, s.tell)
	return s.Store.Update(ctx, of, info)
}

func after(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// endSession revokes the lease of a node, and waits for its next session.
func (c *modelled) endSession(n *modelledNode) {
	c.Helper()
	client := c.etcd.ConnectInBubble(modeletcd.Direct{})
	defer client.Close()
	before := n.SessionID()
	keys, err := client.Get(c.Context(), "taskledger/node/"+before)
	if err != nil || len(keys.Kvs) != 1 {
		c.Fatalf("node key of %s: %v, %v", n.name, keys, err)
	}
	if _, err := client.Revoke(c.Context(), clientv3.LeaseID(keys.Kvs[0].Lease)); err != nil {
		c.Fatal(err)
	}
	for began := time.Now(); n.SessionID() == before || n.SessionID() == ""; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			c.Fatalf("%s has no new session", n.name)
		}
	}
}

// Fresh processes tell each other their clocks at once, one alone waits for nobody, and one whose peers do
// not answer waits for 2.5s: the start of a cluster takes no longer than without the comparison.
func TestClock_FreshProcessesDoNotWaitForEachOther(t *testing.T) {
	for _, withBus := range []bool{false, true} {
		t.Run(fmt.Sprintf("bus %v", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, withBus)
				const atOnce = 500 * time.Millisecond
				for _, name := range []string{"x", "y"} { // own nothing, so that shards are left for those who follow
					if took := c.start(name, 0, noShards).ready(t); took > atOnce {
						t.Errorf("%s is ready after %s", name, took)
					}
				}
				all := []*modelledNode{c.start("a", 0, nil), c.start("b", 0, nil), c.start("c", 0, nil)}
				for _, n := range all {
					if took := n.ready(t); took > atOnce {
						t.Errorf("%s, one of three that begin together, is ready after %s", n.name, took)
					}
				}
				if shares := c.shares(); shares["a"]+shares["b"]+shares["c"] != modelledShards {
					t.Errorf("shards are spread as %v", shares)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, withBus)
				c.start("x", 0, noShards).ready(t)
				c.start("y", 0, noShards).ready(t)
				c.nodes[0].crash()
				c.nodes[1].crash()
				c.nodes = nil
				if took := c.start("a", 0, nil).ready(t); took < 2400*time.Millisecond || took > 3*time.Second {
					t.Errorf("with two peers that say nothing it is ready after %s", took)
				}
			})
		})
	}
}

// Messages that somebody recorded and sends again change nothing, be their sessions alive or over.
func TestLoad_RecordedMessagesChangeNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, true)
		job := newJob(task.Policy{})
		for _, name := range []string{"a", "b", "c", "d"} {
			c.start(name, 0, func(c *cfg) { c.Slots = 1 }, job).ready(t)
		}
		c.spread(4)
		c.backlog(job)
		last := c.nodes[3]
		last.stop()
		last.end()
		c.nodes = c.nodes[:3]
		c.spread(3)
		time.Sleep(5 * time.Minute)
		alarms, serving := c.totals()
		c.bus.mu.Lock()
		recorded := c.bus.loads[:len(c.bus.loads)/2]
		c.bus.mu.Unlock()
		for i, data := range recorded {
			if err := c.bus.Publish("load", "", data); err != nil {
				t.Fatal(err)
			}
			if i%10 == 0 {
				time.Sleep(time.Second)
			}
		}
		if a, s := c.totals(); a != alarms || s != serving || len(recorded) < 100 {
			t.Errorf("%d messages heard again: %d alarms, %d shards served anew", len(recorded), a-alarms, s-serving)
		}
	})
}

// Whoever reads the membership sees whose clock differs by more than a second: of three nodes it is
// the one that differs, of two both.
func TestNodes_ShowWhoseClockDiffers(t *testing.T) {
	t.Parallel()
	for _, withBus := range []bool{false, true} {
		t.Run(fmt.Sprintf("bus %v", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, withBus)
				c.start("a", 0, nil).ready(t)
				c.start("b", 3*time.Second, nil).ready(t)
				c.wantAhead(map[string]time.Duration{"a": -3 * time.Second, "b": 3 * time.Second})
				c.start("c", 100*time.Millisecond, nil).ready(t)
				c.wantAhead(map[string]time.Duration{"a": 0, "b": 3 * time.Second, "c": 0})
				c.nodes[1].ahead.Store(0)
				c.wantAhead(map[string]time.Duration{"a": 0, "b": 0, "c": 0})
			})
		})
	}
}

func (c *modelled) wantAhead(want map[string]time.Duration) {
	c.Helper()
	time.Sleep(30 * time.Second)
	nodes, err := c.nodes[0].Operations().Nodes(within(c.T))
	if err != nil {
		c.Fatal(err)
	}
	for _, n := range nodes {
		got := time.Duration(n.ClockAhead) * time.Millisecond
		if (got-want[n.Name]).Abs() > 100*time.Millisecond || want[n.Name] == 0 && got != 0 {
			c.Errorf("%s is shown %s ahead, want %s", n.Name, got, want[n.Name])
		}
	}
}
