package bench_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors"
	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/measure"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

const (
	takeOverTTL = 3 * time.Second
	pollEvery   = 5 * time.Millisecond  // looks for the end of a session
	askAgain    = 10 * time.Millisecond // after a shard did not accept
	paramsText  = 62                    // with its quotes 64 bytes of JSON
)

// BenchmarkTakeOver measures what delayed tasks cost their owner, and how long its heir needs for them: from the end of
// the dead node's session until the heir has accepted a command on every shard. Etcd is in a process of its own.
func BenchmarkTakeOver(b *testing.B) {
	for _, c := range []struct {
		name   string
		shards int
		tasks  int
		most   float64 // seconds
	}{
		// A shard of 100,000 waiting tasks is taken over within 3 s, as are all of them together.
		{"shards=16", 0, testkit.Times(10_000, 100_000), 3},
		{"shards=1", 1, testkit.Times(10_000, 100_000) - 1, 3}, // the probe has room
		{"shards=1/fewer", 1, testkit.Times(100, 1000), math.Inf(1)},
	} {
		b.Run(c.name, func(b *testing.B) {
			run(b, func(tb testing.TB) figures { return takeOver(tb, c.shards, c.tasks, c.most) })
		})
	}
}

// takeOver submits delayed tasks to a cluster of so many shards, lets its node die and another one take over.
func takeOver(tb testing.TB, shards, tasks int, most float64) figures {
	s := serversApart(tb, shards)
	cfg := engine.NodeConfig{Name: "first", Slots: -1, TTL: takeOverTTL}
	first := must(s.Start(tb.Context(), cfg))(tb)
	held := behaviors.Define[string, behaviors.None]("held", nil)
	params := fmt.Sprintf("%0*d", paramsText, 0)
	far := task.SubmitOptions{NotBefore: time.Now().Add(farAhead)}
	before := liveHeap()
	filled := inParallel(tb.Context(), tasks, func(ctx context.Context, _ int) error {
		_, err := held.SubmitWith(ctx, first, params, far)
		return err
	})
	heap := float64(liveHeap()-before) / float64(tasks)
	dead := first.SessionID()
	check(tb, errors.Join(filled, first.Crash()))

	heir, watch := must(s.Open(tb.Context(), ""))(tb), must(s.Open(tb.Context(), ""))(tb)
	tb.Cleanup(func() { ended(tb, watch.Close()) })
	var second *measure.Node
	var over time.Time
	g, both := errgroup.WithContext(tb.Context())
	g.Go(func() (err error) {
		cfg.Name = "second"
		second, err = measure.StartNode(both, heir, cfg)
		return err
	})
	g.Go(func() (err error) {
		over, err = sessionEnd(both, watch, dead)
		return err
	})
	accepted, err := acceptedEverywhere(tb.Context(), watch)
	err = errors.Join(err, g.Wait())
	if second != nil {
		err = errors.Join(err, second.Close())
	}
	check(tb, err)
	f := newFigures(tb)
	f.is("heap-B/task", heap)
	f.atMost("take-over-s", accepted.Sub(over).Seconds(), most)
	return f
}

// sessionEnd returns when the node key of a session is gone.
func sessionEnd(ctx context.Context, c *cluster.Cluster, id string) (time.Time, error) {
	for {
		now, err := c.Store.ReadMembers(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if _, alive := now.Nodes[id]; !alive {
			return time.Now(), nil
		}
		if !pause(ctx, pollEvery) {
			return time.Time{}, context.Cause(ctx)
		}
	}
}

// acceptedEverywhere returns when the last of the shards has accepted a command of a client.
func acceptedEverywhere(ctx context.Context, c *cluster.Cluster) (time.Time, error) {
	cfg := engine.ClientConfig{
		Store: c.Store,
		Bus:   c.Bus,
		Name:  "bench",
		Log:   measure.Discard,
	}
	client, err := engine.NewClient(cfg)
	if err != nil {
		return time.Time{}, err
	}
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- client.Run(run) }()
	shards := c.Store.Cluster().Shards
	err = inParallel(ctx, shards, func(ctx context.Context, shard int) error {
		return accept(ctx, client, events.TaskID(nameIn(shard, shards, "probe-", taskNamed)))
	})
	at := time.Now()
	stop()
	return at, errors.Join(err, <-ended)
}

// accept asks until the shard of the task accepts.
func accept(ctx context.Context, client *engine.Client, id events.TaskID) error {
	for {
		_, err := client.Submit(ctx, noop, nil, task.SubmitOptions{ID: id, NotBefore: time.Now().Add(farAhead)})
		again := errors.Is(err, store.ErrUnavailable) || errors.Is(err, task.ErrUnknown)
		if !again || !pause(ctx, askAgain) {
			return err
		}
	}
}

func TestTakeOver_TellsEveryFigure(t *testing.T) {
	t.Parallel()
	takeOver(t, 0, 1000, math.Inf(1)).wantPositive("take-over-s")
}
