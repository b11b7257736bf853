package integration_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// upheaval disturbs a cluster of the nodes a, b and c. It returns a node that is there afterwards.
type upheaval func(t *testing.T, c *testcluster.Cluster, nodes []*testcluster.Node, start func(names ...string) []*testcluster.Node) *testcluster.Node

// Whoever serves a shard anew knows what is paused before it starts anything.
func TestPause_HoldsWhateverHappensToNodesAndSessions(t *testing.T) {
	t.Parallel()
	for what, happens := range map[string]upheaval{
		"all nodes are restarted":                             restartAll,
		"all leases are revoked":                              revokeAll,
		"the settings' owner is killed":                       killSettingsOwner,
		"the settings' owner is killed and another one joins": killAndJoin,
		"shards are handed over":                              joinAndSpread,
	} {
		t.Run(what, func(t *testing.T) {
			withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) { pauseHolds(t, c, happens) })
		})
	}
}

func pauseHolds(t *testing.T, c *testcluster.Cluster, happens upheaval) {
	const tasks = 64
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	probe := behaviors.Define("probe", &behaviors.Rules[string, string]{TaskID: idFromParams})
	start := func(names ...string) []*testcluster.Node {
		return c.StartNodes(nil, func(name string) []task.Behavior {
			return []task.Behavior{w.on(name), probe.Bind(func(_ context.Context, p string) (string, error) { return p, nil })}
		}, names...)
	}
	nodes := start("a", "b", "c")
	c.AwaitSpread() // whoever owns nothing need not know yet
	ok(t, nodes[0].Operations().Pause(within(t, soon), "work", ""))
	for _, id := range idInEachShard(c, "early") { // every owner knows
		w.submitWith(t, nodes[0], id, inAnHour())
		awaitExplained(t, nodes[0].Client, events.TaskID(id), task.WhyPaused)
	}
	for i := range tasks {
		w.submit(t, nodes[0], fmt.Sprint("paused", i))
	}

	n := happens(t, c, nodes, start)
	for _, id := range idInEachShard(c, "probe") { // every shard is served, and starts tasks
		f, err := probe.Submit(within(t, soon), n, id)
		ok(t, err)
		want(t, f, id)
	}
	if started := w.count.Load(); started != 0 {
		t.Errorf("%d of %d paused tasks have started", started, tasks)
	}
	ok(t, n.Operations().Unpause(within(t, soon), "work"))
	for range tasks {
		w.next(t).succeed("done")
	}
}

// idInEachShard returns an id for every shard of the cluster.
func idInEachShard(c *testcluster.Cluster, prefix string) (ids []string) {
	have := map[int]bool{}
	for i := 0; len(ids) < c.Shards(); i++ {
		id := fmt.Sprint(prefix, i)
		if shard := events.TaskID(id).Shard(c.Shards()); !have[shard] {
			have[shard] = true
			ids = append(ids, id)
		}
	}
	return ids
}

func restartAll(_ *testing.T, _ *testcluster.Cluster, nodes []*testcluster.Node, start func(...string) []*testcluster.Node) *testcluster.Node {
	var stopping sync.WaitGroup
	for _, n := range nodes {
		stopping.Go(n.Stop)
	}
	stopping.Wait()
	return start("a", "b", "c")[0]
}

// revokeAll revokes all leases, as etcd does when its leader wakes after the TTL.
func revokeAll(t *testing.T, c *testcluster.Cluster, nodes []*testcluster.Node, _ func(...string) []*testcluster.Node) *testcluster.Node {
	old := map[string]bool{}
	for _, n := range nodes {
		old[n.SessionID()] = true
	}
	leases, err := c.Etcd.Leases(within(t, soon))
	ok(t, err)
	for _, l := range leases.Leases {
		_, err := c.Etcd.Revoke(within(t, soon), l.ID)
		ok(t, err)
	}
	for _, n := range nodes {
		testcluster.Await(t, "a new session of "+n.Name, func() bool { id := n.SessionID(); return id != "" && !old[id] })
	}
	return nodes[0]
}

// killSettingsOwner kills the owner of the shard of the settings.
func killSettingsOwner(t *testing.T, c *testcluster.Cluster, nodes []*testcluster.Node, _ func(...string) []*testcluster.Node) (survivor *testcluster.Node) {
	shards, err := nodes[0].Operations().Shards(within(t, soon))
	ok(t, err)
	for _, n := range nodes {
		if n.SessionID() != shards[events.Settings.Shard(c.Shards())].Owner {
			survivor = n
		} else {
			n.Kill()
		}
	}
	return survivor
}

// killAndJoin lets a node begin that knows no settings, and takes shards, while nobody answers for them.
func killAndJoin(t *testing.T, c *testcluster.Cluster, nodes []*testcluster.Node, start func(...string) []*testcluster.Node) *testcluster.Node {
	killSettingsOwner(t, c, nodes, start)
	return start("d")[0]
}

func joinAndSpread(_ *testing.T, c *testcluster.Cluster, nodes []*testcluster.Node, start func(...string) []*testcluster.Node) *testcluster.Node {
	start("d")
	c.AwaitSpread()
	return nodes[0]
}
