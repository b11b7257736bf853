package integration_test

import (
	"fmt"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/internal/testcluster"
)

// Slots that were offered to the owner of a shard come back when that shard is taken over by the very node that offered
// them, and when nobody serves it any more.
func TestSlots_ReturnWhenTheNodeTheyWereOfferedToLeaves(t *testing.T) {
	for _, slots := range []int{1, 2} {
		for _, leaves := range []struct {
			how  string
			node func(*testcluster.Node)
		}{{"drains", (*testcluster.Node).Stop}, {"dies", (*testcluster.Node).Kill}} {
			t.Run(fmt.Sprintf("%d slots, other %s", slots, leaves.how), func(t *testing.T) {
				withSessionsThatEnd(t, func(t *testing.T, c *testcluster.Cluster) {
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
	const slots = 64
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		some := func(cfg *engine.NodeConfig) { cfg.Slots = slots }
		stays, other := c.StartNode("a", some, w.on("a")), c.StartNode("b", some, w.on("b"))
		c.AwaitSpread()
		other.Stop()
		for i := range slots + 16 {
			w.submit(t, stays, fmt.Sprint("one/", i))
		}
		var runs []*run
		for range slots {
			runs = append(runs, w.next(t))
		}
		w.nothing(t)
		for _, r := range runs {
			r.succeed("done")
		}
		for range 16 {
			w.next(t).succeed("done")
		}
	})
}
