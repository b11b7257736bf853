package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
)

const (
	// heardWithin is the time that a pause stands until all nodes have heard of it: as the checkers have it, and after
	// the last fault.
	heardWithin = 2*cluster.TTL + 11*time.Second
	// pausedFor is the time that it lasts after all nodes have begun anew.
	pausedFor = 3 * time.Second
)

// joining has a node beyond those of the run, which does not run yet, for as long as meanwhile takes; then it leaves in
// order.
func joining(ctx context.Context, r *cluster.Cluster, meanwhile func(joins *cluster.Node) error) error {
	if err := r.NewNode(len(r.Nodes)); err != nil {
		return err
	}
	last := len(r.Nodes) - 1
	joins := r.Nodes[last]
	err := meanwhile(joins)
	r.Nodes = r.Nodes[:last]
	if joins.Running() == nil {
		return err
	}
	if failed := joins.Running().Stop(cluster.StopWithin); failed != nil {
		r.Crashed(cluster.Source(joins.Name, joins.Running().PID()))
		r.Broken(check.Clean, "it had joined, and was told to stop: %v", failed)
	}
	joins.Calls.End()
	return err
}

// worksEvery is the time between the tasks that a node which joins is given of each shard.
const worksEvery = 500 * time.Millisecond

// works reports whether a node makes an attempt soon, where every shard has now and then a task that is not paused.
func works(ctx context.Context, r *cluster.Cluster, n *cluster.Node) (worked bool, err error) {
	_, worked = until(ctx, heardWithin, func(ctx context.Context) bool {
		for shard := range cluster.Shards {
			asked := r.Clients[shard%len(r.Clients)].Ask(ctx, traffic.Request{Verb: history.Submit, Task: cluster.IDIn("joined", shard), Again: true,
				Params: traffic.Params{Millis: 1}})
			if ctx.Err() == nil { // or it was cut off: there is no more time
				err = errors.Join(err, cluster.UnlessReplaced(asked))
			}
		}
		cluster.Sleep(ctx, worksEvery)
		return err != nil || r.Executions.MadeBy(n.SessionID()) > 0
	})
	return worked, err
}

// pauseAndRestart pauses a behavior by a command, has a node join, ends every node at once as a crash does, starts them
// again, has the one that joined leave, and unpauses.
func pauseAndRestart(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	const behavior = "once"
	if err := r.Terminal.SetPaused(ctx, true, behavior, "the nodes begin anew"); err != nil {
		return "all nodes", "", err
	}
	cluster.Sleep(ctx, heardWithin)
	d.begins()
	err = joining(ctx, r, func(joins *cluster.Node) error {
		if err := r.Restart(ctx, joins); err != nil {
			return err
		}
		worked, err := works(ctx, r, joins)
		again := r.Nodes[:len(r.Nodes)-d.random.IntN(2)] // with the one that has joined, or without it
		err = errors.Join(err, beginAnew(ctx, r, again))
		cluster.Sleep(ctx, pausedFor)
		if err == nil && worked {
			proof = fmt.Sprintf("%s stayed paused while %s joined and worked, and %d nodes ended and began anew", behavior, joins.Name, len(again))
		}
		return err
	})
	return "all nodes", proof, errors.Join(err, r.Terminal.SetPaused(context.WithoutCancel(ctx), false, behavior, ""))
}

// beginAnew ends nodes at once as a crash does, and starts them again. One that does not run yet joins.
func beginAnew(ctx context.Context, r *cluster.Cluster, nodes []*cluster.Node) error {
	return cluster.EachOf(nodes, func(n *cluster.Node) error {
		if p := n.Running(); p != nil {
			if err := p.Kill(); err != nil {
				return err
			}
			r.Crashed(cluster.Source(n.Name, p.PID()))
			n.Calls.End()
		}
		return r.Restart(ctx, n)
	})
}

// limitedTasks are enough to meet the limit of every node.
const limitedTasks = 24

// limitsAndRestart ends every node at once while more is ready of a behavior than its limit lets them do, and starts
// them again while another one joins: each must keep the limit, and use it.
func limitsAndRestart(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	target = "all nodes"
	err = cluster.AtOnce(limitedTasks, func(i int) error {
		return r.Clients[i%len(r.Clients)].Ask(ctx, traffic.Request{Verb: history.Submit, Task: fmt.Sprint("limited-", d.round, "-", i), Again: true,
			Params: traffic.Params{Millis: 300}})
	})
	if err != nil {
		return target, "", err
	}
	err = joining(ctx, r, func(joins *cluster.Node) error {
		if err := beginAnew(ctx, r, r.Nodes); err != nil {
			return err
		}
		if took, ok := until(ctx, 2*heardWithin, func(context.Context) bool { return meetLimits(r, joins) }); ok {
			proof = fmt.Sprintf("all nodes began anew, and %s joined; %s later one had made as many attempts at once as its limit lets it, and the one that joined some",
				joins.Name, round(took))
		}
		return nil
	})
	return target, proof, err
}

// meetLimits holds that every node keeps its limits, and reports whether any has reached one, and whoever joins has
// made attempts of those.
func meetLimits(r *cluster.Cluster, joins *cluster.Node) (met bool) {
	helped := false
	for behavior, limit := range r.Limits() {
		for _, n := range r.Nodes {
			most := r.Executions.MostOn(n.SessionID(), behavior)
			if most > limit {
				r.Broken(check.Served, "%s made %d attempts of %s at once, its limit is %d", n.SessionID(), most, behavior, limit)
			}
			met, helped = met || most >= limit, helped || n == joins && most > 0
		}
	}
	return met && helped
}

// quarantineAndRestart ends one node or all of them as a crash does while a shard is quarantined, and starts them again
// while another one joins: they serve the other shards, and say of this one what to do.
func quarantineAndRestart(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	nodes := slices.Clone(r.Nodes)
	if d.random.IntN(2) == 0 {
		nodes = nodes[:1]
	}
	return besideAlien(ctx, r, d, func(shard int) error {
		return joining(ctx, r, func(joins *cluster.Node) error {
			if err := beginAnew(ctx, r, append(nodes, joins)); err != nil {
				return err
			}
			servedBeside(ctx, r, shard, fmt.Sprintf("after %d nodes have begun anew and one has joined", len(nodes)))
			if shard == events.Settings.Shard(cluster.Shards) { // it cannot learn what is paused, and starts nothing
				return nil
			}
			worked, err := works(ctx, r, joins)
			if !worked && err == nil && ctx.Err() == nil {
				r.Broken(check.Served, "%s has joined beside a quarantined shard, and has made no attempt %s later", joins.Name, heardWithin)
			}
			return err
		})
	})
}

// servedBeside holds that another shard is served beside a quarantined one, which says what to do.
func servedBeside(ctx context.Context, r *cluster.Cluster, shard int, when string) {
	other := (shard + 1) % cluster.Shards
	took, ok := until(ctx, heardWithin, func(ctx context.Context) bool { return problemOf(ctx, r, other) == "" })
	if !ok && ctx.Err() == nil {
		r.Broken(check.Served, "beside a quarantined shard, shard %d is not served %s %s: %s", other, took, when, problemOf(ctx, r, other))
	}
	if took, ok = until(ctx, heardWithin, func(ctx context.Context) bool { return strings.Contains(problemOf(ctx, r, shard), remedy) }); !ok && ctx.Err() == nil {
		r.Broken(check.Served, "shard %d holds an alien entry, and says %q of it %s %s", shard, problemOf(ctx, r, shard), took, when)
	}
}
