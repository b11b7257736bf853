package fault

import (
	"context"
	"fmt"
	"time"

	"taskledger/integration/robustness/cluster"
)

// callWait bounds the time until a client that will be killed has a call under way.
const callWait = 4 * time.Second

// killClient ends a client with calls under way as a crash does, and starts another one in its place after a while.
func killClient(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	c := d.client
	for until := time.Now().Add(callWait); c.Calls.UnderWay() == 0 && time.Now().Before(until) && ctx.Err() == nil; {
		cluster.Sleep(ctx, time.Millisecond)
	}
	target = c.Source
	d.begins()
	if err := c.Process.Kill(); err != nil {
		return target, "", err
	}
	r.Crashed(c.Source)
	if asked, waits := c.Calls.End(); asked+waits > 0 {
		proof = fmt.Sprintf("pid %d has ended with %d calls and %d waits under way: %v", c.Process.PID(), asked, waits, c.Process.Err())
	}
	cluster.Sleep(ctx, d.duration)
	return target, proof, r.StartClient(ctx, c)
}

// pauseClient lets a client stand still, until its calls are too late or for longer than a session lives, and go on as
// if nothing had been.
func pauseClient(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	stood, err := d.client.Process.Pause(ctx, d.duration)
	if err == nil && stood {
		proof = fmt.Sprintf("pid %d stood still for %s", d.client.Process.PID(), d.duration)
	}
	return d.client.Source, proof, err
}
