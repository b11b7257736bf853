package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// branch is a bus whose link can be cut for one node alone.
type branch struct {
	*memoryBus
	mu        sync.Mutex
	cut       bool
	listeners []func(bool)
}

func (b *branch) isCut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cut
}

// Publish implements store.Bus.
func (b *branch) Publish(subject, reply string, data []byte) error {
	if b.isCut() {
		return errors.New("cut off")
	}
	return b.memoryBus.Publish(subject, reply, data)
}

// Subscribe implements store.Bus.
func (b *branch) Subscribe(ctx context.Context, subject, queue string, h func(store.Message)) error {
	return b.memoryBus.Subscribe(ctx, subject, queue, func(m store.Message) {
		if !b.isCut() {
			h(m)
		}
	})
}

// Notify implements store.Bus.
func (b *branch) Notify(ctx context.Context, h func(bool)) error {
	b.mu.Lock()
	b.listeners = append(b.listeners, h)
	b.mu.Unlock()
	return b.memoryBus.Notify(ctx, h)
}

func (b *branch) set(cut bool) {
	b.mu.Lock()
	b.cut = cut
	listeners := b.listeners
	b.mu.Unlock()
	for _, tell := range listeners {
		tell(!cut)
	}
}

// withoutLoads is a bus on which a node may neither tell nor hear loads.
type withoutLoads struct{ *memoryBus }

// Publish implements store.Bus.
func (b withoutLoads) Publish(subject, reply string, data []byte) error {
	if subject == "load" {
		return nil
	}
	return b.memoryBus.Publish(subject, reply, data)
}

// Subscribe implements store.Bus.
func (b withoutLoads) Subscribe(ctx context.Context, subject, queue string, h func(store.Message)) error {
	if subject == "load" {
		return nil
	}
	return b.memoryBus.Subscribe(ctx, subject, queue, h)
}

// offBus are the ways in which one node has no bus that reaches the others, while they have one.
var offBus = map[string]func(t *testing.T, c *modelled, start func(bus store.Bus) *modelledNode) *modelledNode{
	"begun without": func(_ *testing.T, _ *modelled, start func(store.Bus) *modelledNode) *modelledNode {
		return start(nil)
	},
	"cut off later": func(t *testing.T, c *modelled, start func(store.Bus) *modelledNode) *modelledNode {
		b := &branch{memoryBus: c.bus}
		n := start(b)
		n.ready(t)
		time.Sleep(5 * time.Second)
		b.set(true)
		time.Sleep(15 * time.Second)
		return n
	},
	"split off from the start": func(_ *testing.T, _ *modelled, start func(store.Bus) *modelledNode) *modelledNode {
		return start(&memoryBus{})
	},
	"not allowed to tell or hear loads": func(_ *testing.T, c *modelled, start func(store.Bus) *modelledNode) *modelledNode {
		return start(withoutLoads{c.bus})
	},
}

// A node that alone has no bus, or one that reaches nobody, hears what waits in the shards of the others, and is
// given their work, however few slots it has.
func TestLoad_ReachesWhoAloneHasNoBus(t *testing.T) {
	for name, off := range offBus {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, true)
				here, there := newJob(task.Policy{}), newJob(task.Policy{})
				for _, name := range []string{"a", "b"} {
					c.start(name, 0, func(cfg *cfg) { cfg.Slots = -1 }, here).ready(t)
				}
				off(t, c, func(bus store.Bus) *modelledNode {
					return c.start("c", 0, func(cfg *cfg) { cfg.Slots, cfg.Bus = 1, bus; noShards(cfg) }, there)
				}).ready(t)
				time.Sleep(20 * time.Second)
				for i := range modelledShards {
					began := time.Now()
					f := here.submit(t, c.nodes[0], events.TaskID(idIn(i, modelledShards)))
					there.next(t).succeed("1")
					want(t, f, "1")
					if took := time.Since(began); took > time.Second {
						t.Errorf("a task of shard %d took %s", i, took)
					}
				}
			})
		})
	}
}

// The clock of a node that alone has no bus, or one that reaches nobody, is found to be wrong, and stays so for as
// long as it is.
func TestClock_AnHourOffIsFoundWithoutABusOfItsOwn(t *testing.T) {
	t.Parallel()
	steps := map[string]time.Duration{"begun without": time.Hour, "cut off later": -time.Hour,
		"split off from the start": -time.Hour, "not allowed to tell or hear loads": time.Hour}
	for name, off := range offBus {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, true)
				for _, name := range []string{"a", "b"} {
					c.start(name, 0, nil, newJob(task.Policy{})).ready(t)
				}
				wrong := off(t, c, func(bus store.Bus) *modelledNode {
					return c.start("c", 0, func(cfg *cfg) { cfg.Bus = bus }, newJob(task.Policy{}))
				})
				c.spread(3)
				time.Sleep(90 * time.Second)
				if alarms, _ := c.totals(); alarms != 0 {
					t.Errorf("%d alarms while all clocks are right", alarms)
				}
				wrong.ahead.Store(int64(steps[name]))
				for range 3 {
					time.Sleep(30 * time.Second)
					if shares := c.shares(); shares["c"] != 0 || shares["a"]+shares["b"] != modelledShards {
						t.Errorf("while the clock of c is wrong the shards are spread as %v", shares)
					}
				}
				if alarms, _ := c.totals(); alarms != 1 || wrong.alarms.Load() != 1 {
					t.Errorf("%d alarms, %d of them of the node whose clock is wrong", alarms, wrong.alarms.Load())
				}
				wrong.ahead.Store(0)
				c.spread(3)
			})
		})
	}
}

// A process that alone has no bus is told the clocks of the others as soon as they see that, also where etcd is
// slow: with a wrong clock it takes no shard, and finds that out.
func TestClock_WrongAtTheStartTakesNoShardWithoutABusOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newModelled(t, true)
		slow := func(cfg *cfg) { cfg.Store = slowMember{cfg.Store, 0, 500 * time.Millisecond} }
		for _, name := range []string{"x", "y"} {
			c.start(name, 0, func(cfg *cfg) { slow(cfg); noShards(cfg) }).ready(t)
		}
		for i := range 5 {
			time.Sleep(time.Minute + time.Duration(i)*500*time.Millisecond)
			wrong := c.start("wrong", -time.Hour, func(cfg *cfg) { slow(cfg); cfg.Bus = nil })
			time.Sleep(30 * time.Second)
			if n, doubts := wrong.serving.Load(), wrong.doubts.Load(); n != 0 || doubts != 1 {
				t.Errorf("start %d: it has served %d shards, and taken its clock for wrong %d times", i, n, doubts)
			}
			wrong.stop()
			wrong.end()
			c.nodes = c.nodes[:2]
		}
	})
}
