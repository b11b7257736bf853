package integration_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
)

// servedBy returns which shards a node serves.
func servedBy(t *testing.T, n *testcluster.Node) func(id string) bool {
	t.Helper()
	shards, err := n.Operations().Shards(within(t, soon))
	if err != nil {
		t.Fatal(err)
	}
	return func(id string) bool {
		shard := events.TaskID(id).Shard(len(shards))
		return slices.ContainsFunc(shards, func(s engine.ShardInfo) bool { return s.Shard == shard && s.Owner == n.SessionID() })
	}
}

// names returns ids with a prefix that satisfy a condition.
func names(prefix string, n int, holds func(id string) bool) (ids []string) {
	for i := 0; len(ids) < n; i++ {
		if id := fmt.Sprint(prefix, i); holds(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// A node has work for its slots in its own shards, and in those of a node that runs nothing: neither waits for the end
// of the other.
func TestSlots_AreSharedByLocalShardsAndThoseOfANodeWithoutAny(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		const few, many = 8, 40
		var mu sync.Mutex
		var order []string
		b := behaviors.Define("lasts", &behaviors.Rules[string, string]{TaskID: idFromParams})
		worker := c.StartNode("worker", func(cfg *engine.NodeConfig) { cfg.Slots = 2 }, b.Bind(func(ctx context.Context, id string) (string, error) {
			mu.Lock()
			order = append(order, id)
			mu.Unlock()
			select {
			case <-time.After(100 * time.Millisecond):
				return "done", nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}))
		c.StartNode("owner", noSlots)
		c.AwaitSpread()
		here := servedBy(t, worker)
		own := names("own", few, here)
		if err := worker.Operations().Pause(within(t, soon), "lasts", ""); err != nil { // until all are submitted
			t.Fatal(err)
		}
		var futures []*behaviors.Future[string]
		for _, id := range append(names("other", many, func(id string) bool { return !here(id) }), own...) {
			f, err := b.Submit(within(t, soon), worker, id)
			if err != nil {
				t.Fatal(err)
			}
			futures = append(futures, f)
		}
		if err := worker.Operations().Unpause(within(t, soon), "lasts"); err != nil {
			t.Fatal(err)
		}
		for _, f := range futures {
			want(t, f, "done")
		}
		last := slices.IndexFunc(order, func(id string) bool { return id == own[few-1] })
		for _, id := range own {
			last = max(last, slices.Index(order, id))
		}
		if last >= few+many-few {
			t.Errorf("the last of %d local tasks started as number %d of %d", few, last+1, len(order))
		}
		if first := slices.IndexFunc(order, func(id string) bool { return !slices.Contains(own, id) }); first > few {
			t.Errorf("the first task of another owner's shard started as number %d of %d", first+1, len(order))
		}
	})
}

// All places of a behavior are taken, by attempts that wait, too. What they wait for starts in the slot that is lent,
// although more of the behavior are ready elsewhere.
func TestWait_LentSlotsServeWhatIsWaitedForThoughMoreWaitElsewhere(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("child", &behaviors.Rules[string, string]{TaskID: idFromParams})
		p := defineWork("parent", &behaviors.Rules[string, string]{TaskID: idFromParams})
		child := make(chan string, 1)
		on := p.Bind(func(ctx context.Context, name string) (string, error) {
			p.started <- &run{params: name}
			if name[:4] == "long" {
				<-ctx.Done()
				return "", context.Cause(ctx)
			}
			client, _ := behaviors.Submitter(ctx)
			select {
			case id := <-child:
				f, err := w.Submit(ctx, client, id)
				if err != nil {
					return "", err
				}
				return f.Wait(ctx)
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		})
		worker := c.StartNode("worker", func(cfg *engine.NodeConfig) { cfg.Slots, cfg.Grace = 3, -1 }, w.on("worker"), on)
		c.StartNode("owner", noSlots)
		c.AwaitSpread()
		here := servedBy(t, worker)
		for _, id := range names("long", 2, here) {
			p.submit(t, worker, id)
			p.next(t)
		}
		waits := p.submit(t, worker, "waits")
		p.next(t)
		for _, id := range names("other", 20, func(id string) bool { return !here(id) }) {
			p.submit(t, worker, id)
		}
		child <- names("child", 1, here)[0]
		w.next(t).succeed("done")
		want(t, waits, "done")
	})
}
