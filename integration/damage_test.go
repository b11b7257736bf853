package integration_test

import (
	"fmt"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
)

// idOf returns an id of a shard.
func idOf(shard, shards int, name string) string {
	for i := 0; ; i++ {
		if id := events.TaskID(fmt.Sprint(name, i)); id.Shard(shards) == shard {
			return string(id)
		}
	}
}

func put(t *testing.T, c *testcluster.Cluster, key, value string) {
	t.Helper()
	if _, err := c.Etcd.Put(within(t, soon), "taskledger/"+key, value); err != nil {
		t.Fatal(err)
	}
}

// An owner key that makes no sense is taken by its revision; a key of a shard that does not exist is nobody's. Neither
// ends a session or an attempt, and all shards are served.
func TestDamage_OfMemberKeysEndsNoSession(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		nodes := c.StartNodes(nil, func(node string) []engine.Behavior { return []engine.Behavior{w.on(node)} }, "a", "b")
		c.AwaitSpread()
		sessions := []string{nodes[0].SessionID(), nodes[1].SessionID()}
		const damaged = 3
		running := w.submit(t, nodes[0], idOf(damaged, c.Shards(), "running"))
		r := w.next(t)
		for key, value := range map[string]string{"owner/3": "junk", "owner/99": "junk", "owner/100": "\x92\x01\xa1x", "owner/03": "\x92\x01\xa1x", "owner/x": "x",
			"node/": "x", "journal/99/0000000000000001": "x", "snapshot/99": "x"} {
			put(t, c, key, value)
		}
		for shard := range c.Shards() {
			f := w.submit(t, nodes[1], idOf(shard, c.Shards(), "x"))
			w.next(t).succeed("done")
			want(t, f, "done")
		}
		r.succeed("still running")
		want(t, running, "still running")
		for i, n := range nodes {
			if now := n.SessionID(); now != sessions[i] {
				t.Errorf("session %s of node %s after %s: it has started again", now, n.Name, sessions[i])
			}
		}
		for _, key := range []string{"owner/99", "owner/100", "node/"} {
			if _, err := c.Etcd.Delete(within(t, soon), "taskledger/"+key); err != nil {
				t.Fatal(err)
			}
		}
	})
}
