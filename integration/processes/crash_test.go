package processes_test

import (
	"syscall"
	"testing"

	"taskledger/events"
	"taskledger/internal/testcluster"
)

// processesWithAndWithoutNATS runs a test on processes that have NATS, and on some that never do.
func processesWithAndWithoutNATS(t *testing.T, test func(c *processes)) {
	t.Parallel()
	for name, noNATS := range map[string]bool{"nats": false, "no-nats": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(startProcesses(t, noNATS))
		})
	}
}

const runsNothing = -1

// Servers, submitter and workers are processes of their own; etcd and NATS share one.
func TestProcess_TaskOfAKilledProcessRunsAgainElsewhere(t *testing.T) {
	processesWithAndWithoutNATS(t, func(c *processes) {
		a, b := c.node("a", runsNothing), c.node("b", 8)
		a.submit("x")
		b.starts("x", 1)
		b.order(order{Succeed: "x"})
		a.resolves("x", "b")

		a.submit("y")
		b.starts("y", 1)
		third := c.node("c", 8)
		b.kill()
		third.starts("y", 2)
		third.order(order{Succeed: "y"})
		a.resolves("y", "c")
		c.wantHistory("x", "Created Started Succeeded")
		c.wantHistory("y", "Created Started Lost Started Succeeded")

		// The first one, which could run nothing, is started again with slots, and gets the work of the next that is killed.
		a.submit("z")
		third.starts("z", 1)
		a.stop()
		lifted := c.node("a", 8)
		third.kill()
		lifted.starts("z", 2)
		lifted.order(order{Succeed: "z"})
		if got, err := c.client.Attach("z").Wait(within(c.T, soon)); err != nil || string(got) != `"a"` {
			c.Errorf("the task of the second kill has ended with %s, %v; want it run by a", got, err)
		}
		c.wantHistory("z", "Created Started Lost Started Succeeded")
		c.verify()
		lifted.stop()
	})
}

// The process wakes up long after its session, in the middle of everything: with an attempt that has just succeeded,
// and with commands for shards that it takes for its own.
func TestProcess_PausedPastItsSessionDoesNoHarmWhenItWakes(t *testing.T) {
	processesWithAndWithoutNATS(t, func(c *processes) {
		b := c.node("b", 8)
		a := c.node("a", runsNothing)
		a.submit("x")
		b.starts("x", 1)
		old := c.session("b")
		b.signal(syscall.SIGSTOP)
		third := c.node("c", 8)
		third.starts("x", 2)
		b.order(order{Succeed: "x"})
		for _, id := range oneInEachShard() {
			b.order(order{Submit: id})
		}
		b.signal(syscall.SIGCONT)
		for missing := len(oneInEachShard()); missing > 0; missing-- {
			if w := b.hear("a task is submitted", func(w word) bool { return w.Submitted != "" }); w.Err != "" {
				c.Errorf("submit of %s: %s", w.Submitted, w.Err)
			}
		}
		testcluster.Await(c.T, "b is back as a new node", func() bool {
			id := c.session("b")
			return id != "" && id != old
		})
		c.wantHistory("x", "Created Started Lost Started")
		third.order(order{Succeed: "x"})
		a.resolves("x", "c")
		c.wantHistory("x", "Created Started Lost Started Succeeded")
		for _, id := range oneInEachShard() {
			c.finish(id, b, third)
		}
		c.verify()
		a.stop()
		b.stop()
		third.stop()
	})
}

// oneInEachShard returns task ids that fall into different shards.
func oneInEachShard() (ids []string) {
	for shard := range processShards {
		id := 'a'
		for events.TaskID(id).Shard(processShards) != shard {
			id++
		}
		ids = append(ids, string(id))
	}
	return ids
}

// finish lets a task succeed on whichever of the processes runs it, and asserts that it ended once.
func (c *processes) finish(id string, on ...*process) {
	c.Helper()
	testcluster.Await(c.T, "the end of "+id, func() bool {
		for _, p := range on {
			p.order(order{Succeed: id})
		}
		task, err := c.client.Get(within(c.T, soon), events.TaskID(id))
		return err == nil && task.Final()
	})
	kinds, times := history(c.T, c.client, events.TaskID(id)), map[string]int{}
	for _, kind := range kinds {
		times[kind]++
	}
	if times["Succeeded"] != 1 || times["Failed"] != 0 || times["Created"] != 1 {
		c.Errorf("history of %s is %v", id, kinds)
	}
}
