package engine_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/events"
	"taskledger/task"
)

func TestSetLimit_HoldsFromThenOnWhoeverOwnsTheShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, j := newModelled(t, true), newJob(task.Policy{})
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
		if err != nil || e.Why != task.WhyNoNode {
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
		c, j := newModelled(t, true), newJob(task.Policy{})
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
