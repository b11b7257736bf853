package testcluster

import (
	"context"
	"strconv"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/task"
)

// Within returns a context for what should come at once: it ends with the test, and after two minutes, which is long on
// a slow and busy machine. Calls with it wait for a node that starts again: on such a machine that may take longer than
// callers wait of themselves.
func Within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(task.AwaitNodes(t.Context()), timeout)
	t.Cleanup(cancel)
	return ctx
}

// IDIn returns the id of a task in a shard.
func IDIn(shard, shards int) events.TaskID {
	for i := int64(10); ; i++ { // a, b, and so on
		if id := events.TaskID(strconv.FormatInt(i, 36)); id.Shard(shards) == shard {
			return id
		}
	}
}

// RunNode runs a node until the test ends. It returns when the node is ready.
func RunNode(t testing.TB, cfg engine.NodeConfig) *engine.Node {
	t.Helper()
	n, err := engine.NewNode(cfg)
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, "node "+cfg.Name, n.Run)
	select {
	case <-n.Ready():
	case <-time.After(timeout):
		t.Fatalf("node %s is not ready", cfg.Name)
	}
	return n
}

// RunClient runs a client until the test ends.
func RunClient(t testing.TB, cfg engine.ClientConfig) *engine.Client {
	t.Helper()
	c, err := engine.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, "client", c.Run)
	return c
}

func runUntilEnd(t testing.TB, what string, run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	})
}
