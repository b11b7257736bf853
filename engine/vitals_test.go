package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"taskledger/task"
)

// A node that owns none of the shards tells how many of them nobody owns.
func TestVitals_CountTheShardsWithoutOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, job := newModelled(t, true), newJob(task.Policy{})
		no := false
		a := c.start("a", 0, func(c *cfg) { c.Owner = &no }, job)
		time.Sleep(modelledTTL)
		if n := a.Vitals().ShardsUnowned; n != modelledShards {
			t.Errorf("of %d shards that nobody owns it is said %d", modelledShards, n)
		}
		b := c.start("b", 0, nil, job)
		b.ready(t)
		time.Sleep(modelledTTL)
		if v := a.Vitals(); v.ShardsUnowned != 0 || v.Silent > 2*time.Second {
			t.Errorf("of shards that b owns: %d; the session was renewed %s ago", v.ShardsUnowned, v.Silent)
		}
		b.Kill()
		b.end()
		time.Sleep(2 * modelledTTL)
		if n := a.Vitals().ShardsUnowned; n != modelledShards {
			t.Errorf("of %d shards whose owner has died it is said %d", modelledShards, n)
		}
	})
}
