package testcluster

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine"
	"taskledger/ledger"
)

// Verify asserts that every journal is whole, that every transition in it is legal, and, while a node runs, that what
// the owners hold in memory is the fold of their journals. Owners go on meanwhile, so it asks until a state could be
// compared.
func (c *Cluster) Verify() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var waits string
	for ctx.Err() == nil {
		var damage string
		if damage, waits = c.verify(ctx); damage != "" {
			c.t.Errorf("verification: %s", damage)
			return
		}
		if waits == "" {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	c.t.Errorf("verification: not within %s: %s", timeout, waits)
}

// verify makes one pass over all shards; waits says what could not be compared yet.
func (c *Cluster) verify(ctx context.Context) (damage, waits string) {
	caller, served := c.verifier()
	all, err := caller.Ledger().Verify(ctx, ledger.VerifyOptions{})
	if err != nil {
		return "", err.Error()
	}
	for _, v := range all {
		if v.Problem != "" {
			return fmt.Sprintf("shard %d: %s", v.Shard, v.Problem), ""
		}
		if served && !v.Compared {
			waits = fmt.Sprintf("the state of shard %d was not compared", v.Shard)
		}
	}
	return "", waits
}

// verifier returns who can verify, and whether some node serves the shards.
func (c *Cluster) verifier() (caller *engine.Client, served bool) {
	for _, n := range c.running() {
		caller = n.Client
		served = served || n.owner
	}
	for _, client := range c.clients {
		select {
		case <-client.process.ended:
		default:
			if caller == nil {
				caller = client.Client
			}
		}
	}
	if caller == nil {
		caller = c.StartClient("verifier", nil).Client
	}
	return caller, served
}

// emptySlot is the value of a mailbox key without a batch, as package etcdstore specifies it.
const emptySlot = "\x92\x01\xc0"

// Batches is the number of batches that wait in the mailbox of a shard.
func (c *Cluster) Batches(shard int) (n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	keys, err := c.Etcd.Get(ctx, fmt.Sprintf("%smailbox/%d/", prefix, shard), clientv3.WithPrefix())
	if err != nil {
		c.t.Fatalf("look for batches: %v", err)
	}
	for _, kv := range keys.Kvs {
		if string(kv.Value) != emptySlot {
			n++
		}
	}
	return n
}

// checkNothingLeft asserts that members which left in order have ended their sessions and removed their batches and
// answers.
func (c *Cluster) checkNothingLeft() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if c.files != nil {
		m, err := c.files.store.ReadMembers(ctx)
		if err != nil || len(m.Nodes) > 0 {
			c.t.Errorf("sessions are left behind: %v, %v", m.Nodes, err)
		}
		return
	}
	for _, kind := range []string{"node/", "mailbox/", "answer/"} {
		keys, err := c.Etcd.Get(ctx, prefix+kind, clientv3.WithPrefix())
		if err != nil {
			c.t.Errorf("look for keys left behind: %v", err)
			return
		}
		for _, kv := range keys.Kvs {
			if c.swept.has(string(kv.Key)) {
				continue
			}
			c.t.Errorf("key %s is left behind: %.100q", kv.Key, kv.Value)
		}
	}
}
