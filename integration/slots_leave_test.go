package integration_test

import (
	"fmt"
	"sync"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/internal/testcluster"
)

// Slots that were offered to the owner of a shard come back when that shard is taken over by the very node that offered
// them, and when nobody serves it any more.
func TestSlots_ReturnWhenTheNodeTheyWereOfferedToLeaves(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{1, 2} {
		for _, leaves := range []struct {
			how  string
			node func(*testcluster.Node)
		}{{"drains", (*testcluster.Node).Stop}, {"dies", (*testcluster.Node).Kill}} {
			t.Run(fmt.Sprintf("%d slots, other %s", slots, leaves.how), func(t *testing.T) {
				withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
					w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
					few := func(cfg *engine.NodeConfig) { cfg.Slots = slots }
					stays, other := c.StartNode("a", few, w.on("a")), c.StartNode("b", few, w.on("b"))
					c.AwaitSpread()
					for i := range 4 { // until offers stand
						f := w.submit(t, stays, fmt.Sprint("before", i))
						w.next(t).succeed("done")
						want(t, f, "done")
					}
					leaves.node(other)
					var futures []*behaviors.Future[string]
					for i := range 2 * c.Shards() {
						futures = append(futures, w.submit(t, stays, fmt.Sprint("after", i)))
					}
					for range futures {
						w.next(t).succeed("done")
					}
					for _, f := range futures {
						want(t, f, "done")
					}
				})
			})
		}
	}
}

// The tasks of one affinity are all of one shard: they fill every slot of the node that is left, whichever node had the
// shard before.
func TestSlots_AllRunTheTasksOfOneAffinity(t *testing.T) {
	t.Parallel()
	for _, leaves := range []struct {
		how  string
		node func(*testcluster.Node)
	}{{"drains", (*testcluster.Node).Stop}, {"dies", (*testcluster.Node).Kill}} {
		t.Run("other "+leaves.how, func(t *testing.T) {
			withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) { oneAffinityFillsSlots(t, c, leaves.node) })
		})
	}
}

func oneAffinityFillsSlots(t *testing.T, c *testcluster.Cluster, leave func(*testcluster.Node)) {
	const tasks, slots = 600, 512
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	some := func(cfg *engine.NodeConfig) { cfg.Slots = slots }
	stays, other := c.StartNode("a", some, w.on("a")), c.StartNode("b", some, w.on("b"))
	c.AwaitSpread()
	theirs := servedBy(t, other)
	affinity := names("of-b-", 1, func(id string) bool { return theirs(id + "/") })[0]
	f := w.submit(t, stays, affinity+"/before") // slots are offered to whoever leaves
	w.next(t).succeed("done")
	want(t, f, "done")
	leave(other)
	var submits sync.WaitGroup
	for part := range 20 {
		submits.Go(func() {
			for i := range tasks / 20 {
				if _, err := w.Submit(within(t, 2*soon), stays, fmt.Sprint(affinity, "/", part, "-", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var runs []*run
	for range slots {
		runs = append(runs, w.next(t))
	}
	submits.Wait()
	w.nothing(t)
	for _, r := range runs {
		r.succeed("done")
	}
	for range tasks - slots {
		w.next(t).succeed("done")
	}
}
