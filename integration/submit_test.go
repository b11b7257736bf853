package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

func TestSubmit_SameNameUnderTwoAffinitiesIsTwoTasks(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		first, second := w.submit(t, n, "north/x"), w.submit(t, n, "south/x")
		runs := map[string]*run{}
		for range 2 {
			r := w.next(t)
			runs[r.params] = r
		}
		if again := w.submit(t, n, "north/x"); !again.Joined() || again.ID() != first.ID() {
			t.Errorf("second submit: task %s, joined %t", again.ID(), again.Joined())
		}
		runs["north/x"].succeed("north")
		want(t, first, "north")
		pending(t, second)
		runs["south/x"].succeed("south")
		want(t, second, "south")
		w.nothing(t)
	})
}

func TestSubmit_SecondJoinsTheRunAndALaterOneGetsTheRecordedResult(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		first := w.submit(t, n, "x")
		r := w.next(t)
		second := w.submit(t, n, "x")
		if first.Joined() || !second.Joined() {
			t.Errorf("joined: first %t, second %t; want false, true", first.Joined(), second.Joined())
		}
		pending(t, second)
		r.succeed("done")
		want(t, first, "done")
		want(t, second, "done")
		want(t, w.submit(t, n, "x"), "done")
		w.nothing(t)
		if got, want := history(t, n.Client, "x"), []string{"Created", "Started", "Succeeded"}; !slices.Equal(got, want) {
			t.Errorf("history %v, want %v", got, want)
		}
	})
}

func TestSubmit_LaterOneGetsTheRecordedFailure(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		first := w.submit(t, n, "x")
		w.next(t).fail(behaviors.Cancel(behaviors.Code("broken", errors.New("no luck"), map[string]string{"part": "7"})))
		wantFailure(t, first, "broken")
		e := wantFailure(t, w.submit(t, n, "x"), "broken")
		if e.Message != "no luck" || e.Properties["part"] != "7" || e.Attempt != 1 {
			t.Errorf("later submit: %+v", e)
		}
		w.nothing(t)
		awaitTask(t, n, "x", "is a failure", func(got task.Task) bool { return got.Status == task.Failure && got.Final() })
	})
}

func TestSubmit_ResultlessSuccessIsASuccess(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		n := c.StartNode("a", nil, builtin.Noop())
		f, err := builtin.Noop().Submit(within(t, soon), n, behaviors.None{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, f, behaviors.None{})
		task := awaitTask(t, n, f.ID(), "is a success", func(got task.Task) bool { return got.Status == task.Success })
		if task.Result != nil {
			t.Errorf("result %q, want none", task.Result)
		}
	})
}

func TestSubmit_RequestIDIsRecordedOnce(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: task.Policy{Existing: events.RunAgain}})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		once := task.SubmitOptions{RequestKey: "request-1"}
		first := w.submitWith(t, client, "x", once)
		w.next(t).succeed("1")
		want(t, first, "1")
		want(t, w.submitWith(t, client, "x", once), "1")
		w.nothing(t)
		second := w.submitWith(t, n, "x", task.SubmitOptions{RequestKey: "request-2"})
		w.next(t).succeed("2")
		want(t, second, "2")
		want(t, w.submitWith(t, n, "x", once), "1") // the run that it asked for, whatever came since
		w.nothing(t)
	})
}

func TestSubmit_RunAgainStartsANewRun(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: task.Policy{Existing: events.RunAgain, MaxAttempts: 1}})
		n := c.StartNode("a", nil, w.on("a"))
		first := w.submit(t, n, "x")
		w.next(t).fail(errors.New("no luck"))
		wantFailure(t, first, events.CodeFailed)
		second := w.submit(t, n, "x")
		joined := w.submit(t, n, "x")
		r := w.next(t)
		if r.attempt.Number != 2 || r.attempt.Failures != 0 {
			t.Errorf("attempt %d after %d failures, want 2 after 0: a new run has a fresh budget", r.attempt.Number, r.attempt.Failures)
		}
		r.succeed("ok")
		want(t, second, "ok")
		want(t, joined, "ok")
		w.nothing(t)
	})
}

func TestSubmitRaw_ReachesAWorkerThatOwnsNothing(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", nil)
		c.StartNode("owner", nil)
		c.StartNode("worker", noShards, w.on("worker"))
		client := c.StartClient("caller", nil)
		f := submitRaw(t, client.Client, "work", `"x"`, task.SubmitOptions{})
		w.next(t).succeed("done")
		if got, err := f.Wait(within(t, soon)); err != nil || string(got) != `"done"` {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

func TestSubmitRaw_WithoutAnyNodeIsUnavailable(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		f, err := c.StartClient("caller", nil).SubmitRaw(within(t, soon), "work", nil, task.SubmitOptions{ID: "x"})
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, task.ErrUnknownBehavior) || errors.Is(err, task.ErrUnknown) {
			t.Errorf("got %v of %s, want it unavailable, and nothing accepted", err, f.ID())
		}
	})
}

// Most owners that run the behavior have died a moment ago, and their keys do not say so for longer than a plan may
// take.
func TestSubmitRaw_IsPlannedByALiveNodeRightAfterAKill(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprintf("named %t", named), func(t *testing.T) {
			withTTL(t, 12*time.Second, func(t *testing.T, c *testcluster.Cluster) { plannedAfterAKill(t, c, named) })
		})
	}
}

// plannedAfterAKill submits tasks of shards that are served all the time, or of ids that the engine draws.
func plannedAfterAKill(t *testing.T, c *testcluster.Cluster, named bool) {
	w := defineWork("work", nil)
	nodes := c.StartNodes(nil, func(node string) []task.Behavior { return []task.Behavior{w.on(node)} }, "a", "b", "c", "d")
	c.AwaitSpread()
	client := c.StartClient("caller", nil)
	ids := make([]string, 32) // none is drawn
	if named {
		ids = names("task-", len(ids), servedBy(t, nodes[0]))
	}
	for _, n := range nodes[1:] {
		n.Crash()
	}
	type submitted struct {
		id  events.TaskID
		err error
	}
	all := make(chan submitted)
	for _, id := range ids {
		go func() {
			for unanswered := 0; ; {
				f, err := client.SubmitRaw(within(t, soon), "work", []byte(`"x"`), task.SubmitOptions{ID: events.TaskID(id)})
				if slow := new(*task.OverloadError); errors.As(err, slow) && strings.Contains(err.Error(), "its plan does not return") {
					continue // a living node has said so, on a busy machine
				}
				// On a busy machine the living node may miss a submit. A client that asks three of the nodes alone
				// would miss it twice for some of so many tasks.
				if unanswered++; errors.Is(err, store.ErrUnavailable) && unanswered < 2 {
					continue
				}
				all <- submitted{f.ID(), err}
				return
			}
		}()
	}
	for range ids {
		if s := <-all; s.err != nil || s.id == "" {
			t.Errorf("task %q: %v", s.id, s.err)
		}
	}
	for range ids {
		w.next(t).succeed("done")
	}
}
