package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/internal/testkit"
	"taskledger/task"
)

// leave stops a node in order.
func (c *modelled) leave(name string) {
	c.Helper()
	for i, n := range c.nodes {
		if n.name == name {
			n.stop()
			n.end()
			c.nodes = append(c.nodes[:i:i], c.nodes[i+1:]...)
			return
		}
	}
	c.Fatalf("%s is not there", name)
}

// wantServed wants every shard to be served by one of the named nodes, for longer than what a node told of its
// clock counts.
func (c *modelled) wantServed(when string, by ...string) {
	c.Helper()
	for range 9 {
		time.Sleep(10 * time.Second)
		shares := c.shares()
		served := 0
		for _, name := range by {
			served += shares[name]
		}
		if served != modelledShards {
			c.Fatalf("%s: shards are spread as %v", when, shares)
		}
	}
}

// A clock that was found wrong is not right again because one who said so leaves: it takes no shard while it
// differs from those who are left. Alone it does, and when the difference is gone.
func TestClock_FoundWrongStaysSoWhenAWitnessLeaves(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	for name, names := range map[string][]string{"three": {"b", "a", "wrong"}, "five, two of them wrong": {"b", "a", "d", "wrong", "wrong too"}} {
		for _, withBus := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/bus %v", name, withBus), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newModelled(t, withBus)
					for _, name := range names {
						c.start(name, 0, nil, newJob(task.Policy{})).ready(t)
					}
					c.spread(len(names))
					right := (len(names) + 1) / 2
					wrong := c.nodes[right:]
					for _, n := range wrong {
						n.ahead.Store(int64(time.Hour))
					}
					c.wantServed("found wrong", names[:right]...)
					c.leave("b")
					c.wantServed("one who said so has left", names[1:right]...)
					if len(wrong) == 1 {
						c.leave("a")
						c.wantServed("alone", "wrong")
						c.start("a", 0, nil, newJob(task.Policy{})).ready(t)
						c.spread(2) // of two nodes nobody can tell
						return
					}
					for _, n := range wrong {
						n.ahead.Store(0)
					}
					c.spread(len(c.nodes))
				})
			})
		}
	}
}

// The difference to the one who is left goes away: the clock is right again.
func TestClock_FoundWrongIsRightWhenTheDifferenceIsGone(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	for _, withBus := range []bool{false, true} {
		t.Run(fmt.Sprintf("bus %v", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, withBus)
				for _, name := range []string{"b", "a", "wrong"} {
					c.start(name, 0, nil, newJob(task.Policy{})).ready(t)
				}
				c.spread(3)
				c.nodes[2].ahead.Store(int64(-time.Hour))
				c.wantServed("found wrong", "a", "b")
				c.leave("b")
				c.wantServed("one who said so has left", "a")
				c.nodes[1].ahead.Store(0)
				c.spread(2)
			})
		})
	}
}

// Of three clocks that differ the middle one counts. When its node leaves, the others, both found wrong, do not
// leave the shards to each other.
func TestClock_NodesThatWereAllFoundWrongServeAllTheSame(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	for _, withBus := range []bool{false, true} {
		t.Run(fmt.Sprintf("bus %v", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newModelled(t, withBus)
				for _, name := range []string{"behind", "middle", "ahead"} {
					c.start(name, 0, nil, newJob(task.Policy{})).ready(t)
				}
				c.spread(3)
				c.nodes[0].ahead.Store(int64(-time.Hour))
				c.nodes[2].ahead.Store(int64(time.Hour))
				c.wantServed("all differ", "middle")
				c.leave("middle")
				c.wantServed("both are wrong", "behind", "ahead")
			})
		})
	}
}
