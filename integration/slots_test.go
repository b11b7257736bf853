package integration_test

import (
	"errors"
	"fmt"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

func TestSlots_FreedOneWakesEveryWaitingShard(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Slots = 1 }, w.on("a"))
		var futures []*behaviors.Future[string]
		for i := range 5 * c.Shards() {
			futures = append(futures, w.submit(t, n, fmt.Sprint("x", i)))
		}
		for range futures {
			r := w.next(t)
			select {
			case other := <-w.started:
				t.Errorf("task %s runs beside %s in one slot", other.params, r.params)
				other.succeed("done")
			default:
			}
			r.succeed("done")
		}
		for _, f := range futures {
			want(t, f, "done")
		}
	})
}

func TestSlots_FreedOneElsewhereIsOfferedToEveryShard(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		owner := c.StartNode("owner", noSlots)
		c.StartNode("worker", func(cfg *engine.NodeConfig) { cfg.Slots, cfg.Owner = 1, new(bool) }, w.on("worker"))
		var futures []*behaviors.Future[string]
		for i := range 2 * c.Shards() {
			futures = append(futures, w.submit(t, owner, fmt.Sprint("x", i)))
		}
		for range futures {
			w.next(t).succeed("done")
		}
		for _, f := range futures {
			want(t, f, "done")
		}
	})
}

func TestSlots_MinusOneRunsNothing(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", noSlots, w.on("a"))
		f := w.submit(t, n, "x")
		w.nothing(t)
		awaitExplained(t, n.Client, "x", task.WhyNoNode)
		c.StartNode("b", noShards, w.on("b"))
		r := w.next(t)
		if r.node != "b" {
			t.Errorf("the task runs on %s", r.node)
		}
		r.succeed("done")
		want(t, f, "done")
	})
}

func TestLimits_OfABehaviorHoldOnEveryNode(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w, other := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams}), defineWork("other", nil)
		limits := func(cfg *engine.NodeConfig) { cfg.Limits = map[string]int{"work": 2} }
		nodes := c.StartNodes(limits, func(name string) []task.Behavior { return []task.Behavior{w.on(name), other.on(name)} }, "a", "b")
		client := c.StartClient("caller", nil)
		const tasks = 20
		var futures []*behaviors.Future[string]
		for i := range tasks {
			futures = append(futures, w.submit(t, client, fmt.Sprint("x", i)))
		}
		running := map[string][]*run{}
		for range 4 {
			r := w.next(t)
			running[r.node] = append(running[r.node], r)
		}
		w.nothing(t)
		for _, n := range nodes {
			if len(running[n.Name]) != 2 {
				t.Errorf("%d attempts run on %s, want 2", len(running[n.Name]), n.Name)
			}
		}
		free := other.submit(t, client, "y")
		other.next(t).succeed("done")
		want(t, free, "done")
		for _, runs := range running {
			for _, r := range runs {
				r.succeed("done")
			}
		}
		for range tasks - 4 {
			w.next(t).succeed("done")
		}
		for _, f := range futures {
			want(t, f, "done")
		}
	})
}

func TestPriority_HigherStartsFirst(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Slots = 1 }, w.on("a"))
		w.submit(t, n, "same/first")
		r := w.next(t)
		for i, priority := range []int64{0, 5, events.MaxPriority, 1, 5} {
			w.submitWith(t, n, fmt.Sprintf("same/p%d-%d", priority, i), task.SubmitOptions{Priority: priority})
		}
		r.succeed("done")
		for _, want := range []string{fmt.Sprintf("same/p%d-2", events.MaxPriority), "same/p5-1", "same/p5-4", "same/p1-3", "same/p0-0"} {
			r := w.next(t)
			if r.params != want {
				t.Errorf("%s starts, want %s", r.params, want)
			}
			r.succeed("done")
		}
	})
}

func TestProgress_IsCoalescedToTheLatest(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		w.submit(t, n, "x")
		r := w.next(t)
		for i := range int64(1000) {
			r.attempt.Progress(i+1, 1000, "step")
		}
		seen := awaitTask(t, n, "x", "shows the last report", func(task task.Task) bool {
			return task.Progress != nil && task.Progress.Done == 1000
		})
		if seen.Progress.Total != 1000 || seen.Progress.Note != "step" {
			t.Errorf("progress %+v", seen.Progress)
		}
		if reports := count(history(t, n.Client, "x"), "Progressed"); reports != 2 {
			t.Errorf("%d reports are recorded, want the first and the last", reports)
		}
		r.succeed("done")
		awaitTask(t, n, "x", "has ended", func(task task.Task) bool { return task.Final() })
		r.attempt.Progress(1, 1, "after the end")
		probeQuiet(t, n.Client, "x")
	})
}

// probeQuiet asserts that no event follows the end of a task.
func probeQuiet(t *testing.T, c *engine.Client, id events.TaskID) {
	t.Helper()
	before := history(t, c, id)
	if last := before[len(before)-1]; last != "Succeeded" {
		t.Errorf("last event %s, want Succeeded", last)
	}
}

func TestList_LimitCountsMatchesOnly(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w, other := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams}), defineWork("other", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil)
		client := c.StartClient("caller", nil)
		for i := range 10 {
			w.submitWith(t, client, fmt.Sprint("same/w", i), inAnHour())
			other.submitWith(t, client, fmt.Sprint("same/o", i), inAnHour())
			other.submitWith(t, client, fmt.Sprint("elsewhere/o", i), inAnHour())
		}
		for name, test := range map[string]struct {
			filter task.Filter
			want   int
		}{
			"all":          {task.Filter{}, 30},
			"by behavior":  {task.Filter{Behavior: "work"}, 10},
			"limited":      {task.Filter{Behavior: "work", Limit: 7}, 7},
			"by affinity":  {task.Filter{Affinity: "same"}, 20},
			"both":         {task.Filter{Affinity: "same", Behavior: "other", Limit: 4}, 4},
			"by status":    {task.Filter{Status: task.Created, Limit: 25}, 25},
			"none running": {task.Filter{Status: task.Running}, 0},
		} {
			for _, at := range []*engine.Client{n.Client, client.Client} {
				got := 0
				for _, err := range at.List(within(t, soon), test.filter) {
					ok(t, err)
					got++
				}
				if got != test.want {
					t.Errorf("%s: %d tasks, want %d", name, got, test.want)
				}
			}
		}
		for _, err := range client.List(within(t, soon), task.Filter{Limit: 1001}) {
			if _, is := errors.AsType[*task.LimitError](err); !is {
				t.Errorf("limit of 1001: %v, want a LimitError", err)
			}
		}
	})
}

func TestLimits_SlotsOfferedForOneBehaviorGiveWayToAnother(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w, other := defineWork("work", nil), defineWork("other", nil)
		owner := c.StartNode("owner", noSlots)
		c.StartNode("worker", func(cfg *engine.NodeConfig) {
			cfg.Slots, cfg.Limits, cfg.Owner = 2, map[string]int{"work": 1}, new(bool)
		}, w.on("worker"), other.on("worker"))
		for range 3 {
			first, second := w.submit(t, owner, "1"), w.submit(t, owner, "2")
			free := other.submit(t, owner, "3")
			r := w.next(t)
			other.next(t).succeed("done")
			want(t, free, "done")
			w.nothing(t)
			r.succeed("done")
			w.next(t).succeed("done")
			want(t, first, "done")
			want(t, second, "done")
		}
	})
}
