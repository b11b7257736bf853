package integration_test

import (
	"errors"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
)

// start runs a node with its servers in one process, as on a machine of its own.
func start(t *testing.T, dir string, noNATS bool, b ...task.Behavior) *embedded.Node {
	t.Helper()
	n, err := embedded.StartWith(within(t, soon), embedded.Config{Dir: dir, NoNATS: noNATS, Shards: 8,
		Node: engine.NodeConfig{Name: "only", Behaviors: b, TTL: 60 * time.Second, Grace: -1}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRestart_OfEverythingKeepsTasksTimesAndOutcomes(t *testing.T) {
	t.Parallel()
	for _, noNATS := range []bool{false, true} {
		t.Run(map[bool]string{false: "nats", true: "no-nats"}[noNATS], func(t *testing.T) {
			t.Parallel()
			const delay = 2 * time.Second
			w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
			dir := t.TempDir()
			first := start(t, dir, noNATS, w.on("first"))
			finished := w.submit(t, first, "finished")
			w.next(t).succeed("before")
			want(t, finished, "before")
			w.submit(t, first, "running")
			w.next(t)
			began := time.Now().Truncate(time.Millisecond)
			w.submitWith(t, first, "delayed", task.SubmitOptions{NotBefore: began.Add(delay)})
			ok(t, first.Close())

			second := start(t, dir, noNATS, w.on("second"))
			want(t, w.submit(t, second, "finished"), "before")
			for range 2 { // in either order where the restart took longer than the delay, as the shards come back one by one
				switch r := w.next(t); r.params {
				case "running":
					if r.attempt.Number != 2 || r.attempt.Lost != 0 {
						t.Errorf("attempt %d of running after %d losses runs, want attempt 2 after none", r.attempt.Number, r.attempt.Lost)
					}
					r.succeed("after")
				case "delayed":
					if r.attempt.Number != 1 {
						t.Errorf("attempt %d of delayed runs, want the first", r.attempt.Number)
					}
					r.succeed("in time")
				default:
					t.Fatalf("%s runs again", r.params)
				}
			}
			want(t, w.Attach(second, "running"), "after")
			want(t, w.Attach(second, "delayed"), "in time")
			if at := startedAt(t, second.Client, "delayed"); at[0].Sub(began) < delay {
				t.Errorf("started %s after the submit, want at least %s", at[0].Sub(began), delay)
			}
			verified, err := second.Ledger().Verify(within(t, soon), ledger.VerifyOptions{})
			for _, v := range verified {
				if err != nil || v.Problem != "" {
					t.Errorf("verification: %+v, %v", v, err)
				}
			}
			ok(t, second.Close())
		})
	}
}

func TestStop_CallsThatWaitEndAndLaterOnesAreRefused(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		f := w.submit(t, client, "x")
		r := w.next(t)
		pending(t, f)
		client.Stop()
		if _, err := f.Wait(within(t, soon)); !errors.Is(err, task.ErrClosed) {
			t.Errorf("future of a stopped client: %v, want ErrClosed", err)
		}
		late, err := w.Submit(within(t, soon), client, "y")
		if !errors.Is(err, task.ErrClosed) {
			t.Errorf("submit to a stopped client: %v, want ErrClosed", err)
		}
		if _, again := late.Wait(within(t, soon)); !errors.Is(again, task.ErrClosed) {
			t.Errorf("its future: %v, want ErrClosed", again)
		}
		r.succeed("done")
	})
}

func TestClient_WithoutStoreIsRefusedWhileNATSIsAwayAndNothingElse(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	c.StartNode("a", nil, w.on("a"))
	client := c.StartClient("caller", func(cfg *engine.ClientConfig) { cfg.Store, cfg.Shards = nil, c.Shards() })
	f := w.submit(t, client, "x")
	w.next(t).succeed("done")
	want(t, f, "done")
	c.NATS.Stop()
	if _, err := w.Submit(within(t, time.Second), client, "y"); !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, task.ErrUnknown) {
		t.Errorf("submit without NATS: %v, want ErrUnavailable or ErrUnknown", err)
	}
	if _, err := client.Operations().Nodes(within(t, soon)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("nodes without a store: %v, want ErrUnavailable", err)
	}
	c.NATS.Start()
	f = w.submit(t, client, "z")
	for r := w.next(t); ; r = w.next(t) { // y may have come through, too
		r.succeed("done")
		if r.params == "z" {
			break
		}
	}
	want(t, f, "done")
}
