package integration_test

import (
	"strings"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

func TestExplain_SaysSinceWhen(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("operator", nil)
		// begins asserts that what a command causes is explained as having begun with it.
		begins := func(why task.Reason, command func()) {
			t.Helper()
			before := events.MillisOf(time.Now())
			command()
			after := events.MillisOf(time.Now())
			if e := awaitExplained(t, client.Client, "x", why); e.Since < before || e.Since > after {
				t.Errorf("%s since %s, want %s to %s", why, e.Since.Time(), before.Time(), after.Time())
			}
		}
		begins(task.WhyScheduled, func() { w.submitWith(t, client, "x", inAnHour()) })
		begins(task.WhyPaused, func() {
			ok(t, client.Operations().Pause(within(t, soon), "work", "a migration"))
		})
		since := awaitExplained(t, client.Client, "x", task.WhyPaused).Since
		ok(t, client.Operations().Pause(within(t, soon), "another", ""))
		ok(t, client.Operations().Unpause(within(t, soon), "another"))
		if e := awaitExplained(t, client.Client, "x", task.WhyPaused); e.Since != since {
			t.Errorf("paused since %s, after a pause of another behavior since %s", since.Time(), e.Since.Time())
		}
		begins(task.WhySuspended, func() { ok(t, client.Operations().Suspend(within(t, soon), "x", "")) })
		ok(t, client.Operations().Unpause(within(t, soon), "work"))
		ok(t, client.Operations().Resume(within(t, soon), "x"))
		begins(task.WhyRunning, func() {
			ok(t, client.Operations().RunNow(within(t, soon), "x"))
			w.next(t)
		})
	})
}

func TestExplain_NamesTheOwnerThatHasGone(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		worker := c.StartNode("worker", noShards, w.on("worker"))
		a := c.StartNode("a", noSlots)
		session := a.SessionID()
		w.submit(t, worker, "x")
		w.next(t)
		client := c.StartClient("operator", nil)
		died := events.MillisOf(time.Now())
		a.Kill()
		for what, at := range map[string]*engine.Client{"a node": worker.Client, "a client": client.Client} {
			var e engine.Explanation
			testcluster.Await(t, "the end of the session", func() bool {
				e = awaitExplained(t, at, "x", task.WhyNoOwner)
				return strings.Contains(e.Text, session) && strings.Contains(e.Text, "has ended")
			})
			if at == worker.Client && (e.Since < died || e.Since > events.MillisOf(time.Now())) {
				t.Errorf("%s explains %+v", what, e)
			}
		}
		c.StartNode("b", noSlots)
	})
}

func TestExplain_NamesNodesWithoutASlotForTheBehavior(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		limited := func(limit int) func(*engine.NodeConfig) {
			return func(cfg *engine.NodeConfig) { cfg.Limits = map[string]int{"work": limit} }
		}
		a := c.StartNode("a", limited(0), w.on("a"))
		w.submit(t, a, "x")
		wantText := func(why task.Reason, want, not string) {
			t.Helper()
			if e := awaitExplained(t, a.Client, "x", why); !strings.Contains(e.Text, want) || strings.Contains(e.Text, not) || e.Since == 0 {
				t.Errorf("explained as %+v, want %q", e, want)
			}
		}
		wantText(task.WhyNoNode, "limit of work is 0 on a", "taken")
		c.StartNode("worker", func(cfg *engine.NodeConfig) { noShards(cfg); limited(0)(cfg) }, w.on("worker"))
		testcluster.Await(t, "both in the explanation", func() bool {
			e, err := a.Explain(within(t, soon), "x")
			return err == nil && strings.Contains(e.Text, "limit of work is 0 on a, worker")
		})
		c.StartNode("b", func(cfg *engine.NodeConfig) { noShards(cfg); limited(1)(cfg) }, w.on("b"))
		w.next(t)
		w.submit(t, a, "y")
		awaitExplained(t, a.Client, "y", task.WhyWaiting)
		if e := awaitExplained(t, a.Client, "y", task.WhyWaiting); !strings.HasSuffix(e.Text, " on b") {
			t.Errorf("explained as %+v, want b alone", e)
		}
	})
}
