package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/role"
	"taskledger/integration/robustness/traffic"
)

const (
	// heardWithin is how long a pause is let stand until all nodes have heard of it: as the checkers have it, and after the last fault.
	heardWithin = 2*ttl + 11*time.Second
	// pausedFor is how long it lasts after all nodes have begun anew.
	pausedFor = 3 * time.Second
)

// pauseAndRestart pauses a behavior by a command, ends every node at once as a crash does, starts them again, and unpauses.
func pauseAndRestart(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	const behavior = "once"
	if err := r.terminal.operate(ctx, "pause", behavior); err != nil {
		return "all nodes", "", err
	}
	sleep(ctx, heardWithin)
	d.begins()
	err = r.beginAnew(ctx, r.nodes)
	sleep(ctx, pausedFor)
	if err == nil {
		proof = fmt.Sprintf("%s stayed paused while all %d nodes ended and began anew", behavior, len(r.nodes))
	}
	return "all nodes", proof, errors.Join(err, r.terminal.operate(context.WithoutCancel(ctx), "unpause", behavior))
}

// beginAnew ends nodes at once as a crash does, and starts them again.
func (r *run) beginAnew(ctx context.Context, nodes []*node) error {
	return eachOf(nodes, func(n *node) error {
		p := n.running()
		if err := p.kill(); err != nil {
			return err
		}
		r.crashed(role.Source(n.Name, p.pid()))
		n.calls.end()
		return r.restart(ctx, n)
	})
}

// limitedTasks are enough to meet the limit of every node.
const limitedTasks = 24

// limitsAndRestart ends every node at once while more is ready of a behavior than its limit lets them do, and starts them again: each
// must keep the limit, and use it.
func limitsAndRestart(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	target = "all nodes"
	err = eachOf(make([]struct{}, limitedTasks), sharing(limitedTasks, func(i int) error {
		return r.clients[i%len(r.clients)].ask(ctx, traffic.Request{Verb: history.Submit, Task: fmt.Sprint("limited-", d.round, "-", i), Again: true,
			Params: traffic.Params{Millis: 300}})
	}))
	if err = errors.Join(err, r.beginAnew(ctx, r.nodes)); err != nil {
		return target, "", err
	}
	met := func(context.Context) (met bool) {
		for behavior, limit := range r.limits() {
			for _, n := range r.nodes {
				most := r.oracle.mostOn(n.sessionID(), behavior)
				if most > limit {
					r.broken(check.Served, "%s made %d attempts of %s at once, its limit is %d", n.sessionID(), most, behavior, limit)
				}
				met = met || most >= limit
			}
		}
		return met
	}
	if took, ok := until(ctx, 2*heardWithin, met); ok {
		proof = fmt.Sprintf("all %d nodes began anew; %s later one made as many attempts at once as its limit lets it", len(r.nodes), round(took))
	}
	return target, proof, nil
}

// quarantineAndRestart ends one node or all of them as a crash does while a shard is quarantined, and starts them again: they serve the other
// shards, and say of this one what to do.
func quarantineAndRestart(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	nodes := r.nodes
	if d.random.IntN(2) == 0 {
		nodes = nodes[:1]
	}
	return r.besideAlien(ctx, d, func(shard int) error {
		if err := r.beginAnew(ctx, nodes); err != nil {
			return err
		}
		other := (shard + 1) % shards
		took, ok := until(ctx, heardWithin, func(ctx context.Context) bool { return r.problemOf(ctx, other) == "" })
		if !ok && ctx.Err() == nil {
			r.broken(check.Served, "beside a quarantined shard, shard %d is not served %s after %d nodes have begun anew: %s", other, took, len(nodes), r.problemOf(ctx, other))
		}
		if took, ok = until(ctx, heardWithin, func(ctx context.Context) bool { return strings.Contains(r.problemOf(ctx, shard), remedy) }); !ok && ctx.Err() == nil {
			r.broken(check.Served, "shard %d holds an alien entry, and says %q of it %s after %d nodes have begun anew", shard, r.problemOf(ctx, shard), took, len(nodes))
		}
		return nil
	})
}
