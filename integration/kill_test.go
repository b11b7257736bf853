package integration_test

import (
	"fmt"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

func TestKill_TaskOfADeadNodeRunsAgainOnASurvivor(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		observer := c.StartNode("observer", noSlots)
		b := c.StartNode("b", noShards, w.on("b"))
		f := w.submit(t, observer, "x")
		first := w.next(t)
		if first.node != "b" {
			t.Fatalf("the task runs on %s", first.node)
		}
		c.StartNode("c", noShards, w.on("c"))
		session := b.SessionID()
		b.Kill()
		again := w.next(t)
		if again.node != "c" || again.attempt.Number != 2 || again.attempt.Lost != 1 || again.attempt.Failures != 0 {
			t.Errorf("attempt %d on %s after %d losses and %d failures; want 2 on c after 1 and 0",
				again.attempt.Number, again.node, again.attempt.Lost, again.attempt.Failures)
		}
		if again.attempt.Token.Ref <= first.attempt.Token.Ref {
			t.Errorf("fencing token %s does not exceed %s", again.attempt.Token, first.attempt.Token)
		}
		again.succeed("done")
		want(t, f, "done")
		kinds := history(t, observer.Client, "x")
		if fmt.Sprint(kinds) != "[Created Started Lost Started Succeeded]" {
			t.Errorf("history %v", kinds)
		}
		w.nothing(t)
		nodes, err := observer.Operations().Nodes(within(t, soon))
		for _, n := range nodes {
			if err != nil || n.ID == session {
				t.Errorf("nodes %v, %v: the dead session is still there", nodes, err)
			}
		}
	})
}

func TestKill_SurvivorsTakeTheShardsOfADeadOwner(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		a := c.StartNode("a", nil, w.on("a"))
		worker := c.StartNode("worker", noShards)
		client := c.StartClient("caller", nil)
		var futures []*behaviors.Future[string]
		for i := range 20 {
			futures = append(futures, w.submit(t, client, fmt.Sprint("x", i)))
		}
		for range 20 {
			if r := w.next(t); r.node != "a" {
				t.Errorf("task %s runs on %s", r.params, r.node)
			}
		}
		a.Kill()
		c.StartNodes(nil, func(name string) []task.Behavior { return []task.Behavior{w.on(name)} }, "b", "c")
		for range 20 {
			r := w.next(t)
			if r.attempt.Number != 2 {
				t.Errorf("task %s: attempt %d, want 2", r.params, r.attempt.Number)
			}
			r.succeed("done " + r.params)
		}
		for i, f := range futures {
			want(t, f, fmt.Sprint("done x", i))
		}
		want(t, w.submit(t, worker, "x7"), "done x7")
		w.nothing(t)
	})
}

func TestKill_TaskLostTooOftenFails(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	w := defineWork("work", &behaviors.Rules[string, string]{Policy: task.Policy{MaxLost: 1}})
	observer := c.StartNode("observer", noSlots)
	b := c.StartNode("b", noShards, w.on("b"))
	f := w.submit(t, observer, "x")
	w.next(t)
	b.Kill()
	wantFailure(t, f, events.CodeLost)
}

func TestKill_DelayOfTheSecondLossIsHonoured(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	w := defineWork("work", &behaviors.Rules[string, string]{Policy: task.Policy{LostDelay: 2 * time.Second}})
	observer := c.StartNode("observer", noSlots)
	var f *behaviors.Future[string]
	for i, name := range []string{"b", "c"} {
		n := c.StartNode(name, noShards, w.on(name))
		if i == 0 {
			f = w.submit(t, observer, "x")
		}
		w.next(t)
		n.Kill()
	}
	c.StartNode("d", noShards, w.on("d"))
	w.next(t).succeed("done")
	want(t, f, "done")
	var lost, started events.Millis
	for ev, err := range observer.Ledger().History(within(t, soon), f.ID()) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev.Body.(type) {
		case *events.Lost:
			lost = ev.At
		case *events.Started:
			started = ev.At
		}
	}
	if wait := started - lost; lost == 0 || wait < 1000 {
		t.Errorf("started again %d ms after the loss, want at least 1000", wait)
	}
}

func TestSession_NodeWhoseLeaseIsGoneStartsAgainUnderANewID(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		f := w.submit(t, n, "x")
		first := w.next(t)
		old := n.SessionID()
		if _, err := c.Etcd.Delete(within(t, soon), "taskledger/node/"+old); err != nil {
			t.Fatal(err)
		}
		select {
		case <-first.ctx.Done():
		case <-time.After(soon):
			t.Fatal("the attempt of the ended session goes on")
		}
		again := w.next(t)
		if id := n.SessionID(); id == old || id == "" {
			t.Errorf("session %q after %q", id, old)
		}
		if again.attempt.Number != 2 || again.attempt.Lost != 1 {
			t.Errorf("attempt %d after %d losses, want 2 after 1", again.attempt.Number, again.attempt.Lost)
		}
		again.succeed("done")
		want(t, f, "done")
		want(t, w.submit(t, n, "x"), "done")
	})
}

func TestDrain_RunningTaskIsReleasedAndShardsAreHandedOver(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		a := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Grace = -1 }, w.on("a"))
		b := c.StartNode("b", nil)
		f := w.submit(t, b, "x")
		if r := w.next(t); r.node != "a" {
			t.Fatalf("the task runs on %s", r.node)
		}
		a.Stop()
		kinds := history(t, b.Client, "x")
		if fmt.Sprint(kinds) != "[Created Started Released]" {
			t.Errorf("history %v", kinds)
		}
		c.StartNode("c", noShards, w.on("c"))
		r := w.next(t)
		if r.attempt.Number != 2 || r.attempt.Lost != 0 || r.attempt.Failures != 0 {
			t.Errorf("attempt %+v, want 2 without loss or failure", r.attempt)
		}
		r.succeed("done")
		want(t, f, "done")
	})
}

func TestDrain_TaskThatEndsWithinTheGraceSucceeds(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	a := c.StartNode("a", func(cfg *engine.NodeConfig) { cfg.Grace = soon }, w.on("a"))
	b := c.StartNode("b", nil)
	f := w.submit(t, b, "x")
	r := w.next(t)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		a.Stop()
	}()
	awaitNode(t, b, func(n store.NodeInfo) bool { return n.Name == "a" && n.Draining })
	waiting := w.submit(t, b, "y")
	w.nothing(t)
	r.succeed("done")
	want(t, f, "done")
	<-stopped
	c.StartNode("c", nil, w.on("c"))
	w.next(t).succeed("late")
	want(t, waiting, "late")
	if n := count(history(t, b.Client, "x"), "Released"); n != 0 {
		t.Errorf("released %d times", n)
	}
}

// awaitNode waits until some present node is as wanted.
func awaitNode(t *testing.T, at *testcluster.Node, holds func(store.NodeInfo) bool) {
	t.Helper()
	testcluster.Await(t, "a node as wanted", func() bool {
		nodes, err := at.Operations().Nodes(within(t, soon))
		for _, n := range nodes {
			if err == nil && holds(n) {
				return true
			}
		}
		return false
	})
}
