package engine_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
)

// Tasks of all shards of a node wait for its one slot. Those of the highest priority come first, and of one priority those that
// became ready first.
func TestPriorityAndOrder_HoldAmongAllShardsOfANode(t *testing.T) {
	for _, shards := range []int{1, 2, 16} {
		for _, bus := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d shards, bus %t", shards, bus), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, j := newModelled(t, bus), newJob(engine.Policy{})
					c.many = shards
					n := c.start("a", 0, func(config *cfg) { config.Slots = 1 }, j)
					n.ready(t)
					j.submit(t, n.Client, "held")
					held := j.next(t)
					submit := func(name string, tasks int, priority int64) (ids []events.TaskID) {
						for i := range tasks {
							id := events.TaskID(fmt.Sprint(name, "-", i))
							if _, err := n.Submit(within(t), j, nil, engine.SubmitOptions{ID: id, Priority: priority}); err != nil {
								t.Fatal(err)
							}
							ids = append(ids, id)
							time.Sleep(2 * time.Millisecond) // in the time of the bubble: entry times differ
						}
						return ids
					}
					low := submit("low", 100, 1)
					want := append(submit("high", 10, 9), low...)
					held.succeed("1")
					for i, id := range want {
						r := j.next(t)
						if r.Task != id {
							t.Fatalf("start %d is of %s, want %s", i, r.Task, id)
						}
						r.succeed("1")
					}
				})
			})
		}
	}
}

// Many slots become free at once: the first of all shards fill them.
func TestPriorityAndOrder_HoldWhenManySlotsBecomeFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, j := newModelled(t, true), newJob(engine.Policy{})
		const slots = 6
		n := c.start("a", 0, func(config *cfg) { config.Slots = slots }, j)
		n.ready(t)
		var held []*run
		for i := range slots {
			j.submit(t, n.Client, events.TaskID(fmt.Sprint("held-", i)))
			held = append(held, j.next(t))
		}
		for i := range 60 {
			o := engine.SubmitOptions{ID: events.TaskID(fmt.Sprint("x", i)), Priority: int64(i * 7 % 60)}
			if _, err := n.Submit(within(t), j, nil, o); err != nil {
				t.Fatal(err)
			}
		}
		for len(held) > 0 {
			for _, r := range held {
				r.succeed("1")
			}
			held = held[:0]
			if j.count.Load() == 60+slots {
				break
			}
			synctest.Wait()
			for range slots {
				held = append(held, j.next(t))
			}
			low, high := int64(60), int64(0)
			for _, r := range held {
				low, high = min(low, r.priority(t, n.Client)), max(high, r.priority(t, n.Client))
			}
			if high-low >= slots {
				t.Fatalf("%d slots are filled with priorities %d to %d", slots, low, high)
			}
		}
	})
}

// priority is that of the attempt's task.
func (r *run) priority(t *testing.T, c *engine.Client) int64 {
	t.Helper()
	task, err := c.GetLinear(within(t), r.Task)
	if err != nil {
		t.Fatal(err)
	}
	return task.Priority
}

// A behavior that asks for no attempt for now gives them back: neither the retries nor the losses of the run are used up.
func TestRelease_IsNeitherFailureNorLoss(t *testing.T) {
	inService(t, engine.Policy{MaxAttempts: 1, MaxLost: 1}, func(t *testing.T, c *modelled, j *job) {
		f := j.submit(t, c.nodes[0].Client, "x")
		began := time.Now()
		for i, wait := range []time.Duration{0, 0, time.Minute, 0} {
			r := j.next(t)
			if r.Failures != 0 || r.Lost != 0 || r.Number != i+1 {
				t.Errorf("attempt %d, after %d failures and %d losses", r.Number, r.Failures, r.Lost)
			}
			r.ends <- engine.Outcome{Release: true, Wait: wait}
		}
		r := j.next(t)
		if took := time.Since(began); took < time.Minute || took > time.Minute+10*time.Second {
			t.Errorf("the last attempt begins after %s, want a minute", took)
		}
		r.succeed("1")
		want(t, f, "1")
		wantHistory(t, c.nodes[0].Client, "x", "Created Started Released Started Released Started Released Started Released Started Succeeded")
	})
}

func TestSetLimit_HoldsFromThenOnWhoeverOwnsTheShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, j := newModelled(t, true), newJob(engine.Policy{})
		owner := c.start("owner", 0, noSlots)
		owner.ready(t)
		n := c.start("a", 0, nil, j) // which owns shards, too
		n.ready(t)
		c.spread(2)
		if err := n.SetLimit(j.ID(), 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second) // in the time of the bubble: offers of before are closed, and the others have heard of it
		const tasks = 40
		for i := range tasks {
			j.submit(t, owner.Client, events.TaskID(fmt.Sprint("x", i)))
		}
		j.nothing(t)
		e, err := owner.Explain(within(t), "x1")
		if err != nil || e.Why != engine.WhyNoNode {
			t.Errorf("explained as %+v, %v; want that no node may run it", e, err)
		}
		if err := n.SetLimit(j.ID(), 3); err != nil {
			t.Fatal(err)
		}
		for left := tasks; left > 0; left -= min(left, 3) {
			var running []*run
			for range min(left, 3) {
				running = append(running, j.next(t))
			}
			j.nothing(t)
			for _, r := range running {
				r.succeed("1")
			}
		}
		if err := n.SetLimit("no-such", 1); err == nil {
			t.Error("the limit of a behavior is set that the node does not run")
		}
	})
}

// A limit above the slots of the node is none: all its slots are used, and no more.
func TestSetLimit_AboveTheSlotsLeavesThemTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots = 3
		c, j := newModelled(t, true), newJob(engine.Policy{})
		n := c.start("a", 0, func(config *cfg) { config.Slots, config.Limits = slots, map[string]int{j.ID(): 1} }, j)
		n.ready(t)
		for i := range 3 * slots {
			j.submit(t, n.Client, events.TaskID(fmt.Sprint("x", i)))
		}
		running := []*run{j.next(t)}
		j.nothing(t)
		for _, limit := range []int{100, math.MaxInt} {
			if err := n.SetLimit(j.ID(), limit); err != nil {
				t.Fatal(err)
			}
			for len(running) < slots {
				running = append(running, j.next(t))
			}
			j.nothing(t)
			for _, r := range running {
				r.succeed("1")
			}
			running = nil
		}
		for range slots {
			j.next(t).succeed("1")
		}
	})
}
