package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/internal/modeletcd"
	"taskledger/ledger/repair"
	"taskledger/task"
)

// leaseless are the two orders of events: a node ends, and somebody else puts its key without a lease. Etcd never
// removes such a key.
var leaseless = map[string]func(c *modelled, n *modelledNode){
	"before its end": func(c *modelled, n *modelledNode) {
		c.write(nodeKey(n.SessionID()), "junk")
		n.crash()
	},
	"after its end": func(c *modelled, n *modelledNode) {
		session := n.SessionID()
		n.crash()
		c.write(nodeKey(session), "junk")
	},
}

// besideALeaselessKey runs a test in every order, with NATS and without.
func besideALeaselessKey(t *testing.T, test func(t *testing.T, withBus bool, end func(*modelled, *modelledNode))) {
	for order, end := range leaseless {
		for _, withBus := range []bool{true, false} {
			t.Run(fmt.Sprint(order, ", NATS: ", withBus), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, withBus, end) })
			})
		}
	}
}

// Somebody puts the key of a node without a lease: its shards and its attempts are lost as with any other node that
// ends.
func TestLeaselessNodeKey_IsNoSignOfLife(t *testing.T) {
	t.Parallel()
	besideALeaselessKey(t, func(t *testing.T, withBus bool, end func(*modelled, *modelledNode)) {
		c, job := newPair(t, withBus)
		a, b := c.nodes[0], c.nodes[1]
		var all []*engine.Future
		for shard := range modelledShards {
			all = append(all, job.submit(t, a.Node, idIn(shard, modelledShards)))
		}
		alive := map[string]*run{}
		for range all {
			r := job.next(t)
			alive[string(r.Task)] = r
		}
		end(c, b)
		ended := time.Now()
		lost := 0
		for task, r := range alive {
			if r.ctx.Err() != nil {
				delete(alive, task)
				lost++
			}
		}
		if lost == 0 || len(alive) == 0 {
			t.Fatalf("%d attempts have ended with the node, %d have not; want some of each", lost, len(alive))
		}
		for range lost {
			r := job.next(t)
			alive[string(r.Task)] = r
		}
		if took := time.Since(ended); took > modelledTTL+time.Second {
			t.Errorf("the tasks of the node ran again after %s", took)
		}
		for _, r := range alive {
			r.succeed("1")
		}
		for _, f := range all {
			want(t, f, "1")
		}
	})
}

// A node alone begins again beside the key that its last session has left.
func TestLeaselessNodeKey_KeepsNoShardFromANodeAlone(t *testing.T) {
	besideALeaselessKey(t, func(t *testing.T, withBus bool, end func(*modelled, *modelledNode)) {
		c, job := newModelled(t, withBus), newJob(task.Policy{})
		a := c.start("a", 0, nil, job)
		a.ready(t)
		id := idIn(3, modelledShards)
		job.submit(t, a.Node, id)
		job.next(t)
		end(c, a)
		again := c.start("a", 0, nil, job)
		if took := again.ready(t); took > modelledTTL+time.Second {
			t.Errorf("it is ready after %s", took)
		}
		job.next(t).succeed("1")
		want(t, again.Attach(id), "1")
	})
}

// A copy of a node's key under another id is no node that shards could be given to, and can be removed.
func TestLeaselessNodeKey_OfNobodyIsGivenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, job := newPair(t, true)
		a, b := c.nodes[0], c.nodes[1]
		etcd := c.etcd.ConnectInBubble(modeletcd.Direct{})
		defer etcd.Close() // tells that its context has ended
		was, err := etcd.Get(t.Context(), nodeKey(b.SessionID()))
		if err != nil {
			t.Fatal(err)
		}
		c.write(nodeKey("phantom"), string(was.Kvs[0].Value))
		b.stop()
		b.end()
		if shares := c.shares(); shares["a"] != modelledShards {
			t.Errorf("shards are spread as %v", shares)
		}
		for shard := range modelledShards {
			f := job.submit(t, a.Node, idIn(shard, modelledShards))
			job.next(t).succeed("1")
			want(t, f, "1")
		}
		for _, remove := range []bool{false, true} {
			strays, err := a.Operations().Repair(within(t), repair.Options{Remove: remove})
			if err != nil || len(strays) != 1 || strays[0].Key != nodeKey("phantom") || strays[0].Keep != "" || strays[0].Removed != remove {
				t.Errorf("repair, removing %t: %+v, %v", remove, strays, err)
			}
		}
		if strays, err := a.Operations().Repair(within(t), repair.Options{}); err != nil || len(strays) != 0 {
			t.Errorf("repair after that: %+v, %v", strays, err)
		}
	})
}
