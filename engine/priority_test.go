package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/task"
)

// Tasks of all shards of a node wait for its one slot. Those of the highest priority come first, and of one
// priority those that became ready first.
func TestPriorityAndOrder_HoldAmongAllShardsOfANode(t *testing.T) {
	for _, shards := range []int{1, 2, 16} {
		for _, bus := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d shards, bus %t", shards, bus), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, j := newModelled(t, bus), newJob(task.Policy{})
					c.many = shards
					n := c.start("a", 0, func(config *cfg) { config.Slots = 1 }, j)
					n.ready(t)
					j.submit(t, n.Client, "held")
					held := j.next(t)
					submit := func(name string, tasks int, priority int64) (ids []events.TaskID) {
						for i := range tasks {
							id := events.TaskID(fmt.Sprint(name, "-", i))
							if _, err := n.Submit(within(t), j, nil, task.SubmitOptions{ID: id, Priority: priority}); err != nil {
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
		c, j := newModelled(t, true), newJob(task.Policy{})
		const slots = 6
		n := c.start("a", 0, func(config *cfg) { config.Slots = slots }, j)
		n.ready(t)
		var held []*run
		for i := range slots {
			j.submit(t, n.Client, events.TaskID(fmt.Sprint("held-", i)))
			held = append(held, j.next(t))
		}
		for i := range 60 {
			o := task.SubmitOptions{ID: events.TaskID(fmt.Sprint("x", i)), Priority: int64(i * 7 % 60)}
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

// priority returns the priority of the attempt's task.
func (r *run) priority(t *testing.T, c *engine.Client) int64 {
	t.Helper()
	task, err := c.GetLinear(within(t), r.Task)
	if err != nil {
		t.Fatal(err)
	}
	return task.Priority
}
