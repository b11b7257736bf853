package engine_test

import (
	"context"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/internal/testcluster"
)

// An entry that cannot be read stops its shard and no other, and no node dies of it or takes it back and forth.
func TestShard_WithADamagedEntryIsQuarantinedAlone(t *testing.T) {
	t.Parallel()
	_, etcd := testcluster.StartEtcd(t)
	const shards = 4
	store, err := etcdstore.Open(within(t), etcdstore.Config{Client: etcd, Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const poisoned = 2
	if _, err := etcd.Put(within(t), "taskledger/journal/2/0000000000000001", "garbage"); err != nil {
		t.Fatal(err)
	}
	j := newJob(engine.Policy{})
	n := runNode(t, engine.NodeConfig{Store: store, Name: "n", TTL: 3 * time.Second, Behaviors: []engine.Behavior{j}})
	session := n.SessionID()
	for shard := range shards {
		id := idIn(shard, shards)
		if shard == poisoned {
			continue
		}
		f := j.submit(t, n, id)
		j.next(t).succeed("1")
		want(t, f, "1")
	}
	if id := n.SessionID(); id != session {
		t.Errorf("session %s after %s: the node has started again", id, session)
	}
	asked, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	infos, err := n.Shards(asked)
	if err != nil || infos[poisoned].Problem == "" {
		t.Errorf("shard %d tells of no problem: %+v, %v", poisoned, infos, err)
	}
	found, err := n.Verify(within(t), nil)
	if err != nil || found[poisoned].Problem == "" {
		t.Errorf("verification of shard %d: %+v, %v; want the damage", poisoned, found, err)
	}
}

// idIn returns a task id in a shard.
func idIn(shard, shards int) events.TaskID {
	for i := 'a'; ; i++ {
		if id := events.TaskID(i); id.Shard(shards) == shard {
			return id
		}
	}
}

// runNode runs a node until the test ends.
func runNode(t *testing.T, c engine.NodeConfig) *engine.Node {
	t.Helper()
	n, err := engine.NewNode(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := n.Run(ctx); err != nil {
			t.Errorf("node %s: %v", c.Name, err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	select {
	case <-n.Ready():
	case <-time.After(soon):
		t.Fatalf("node %s is not ready", c.Name)
	}
	return n
}
