package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/record"
	"taskledger/integration/robustness/role"
	"taskledger/integration/robustness/traffic"
)

const (
	// heardWithin is how long a pause is let stand until all nodes have heard of it: as the checkers have it, and after the last fault.
	heardWithin = 2*ttl + 11*time.Second
	// pausedFor is how long it lasts after all nodes have begun anew.
	pausedFor = 3 * time.Second
)

// joining has a node beyond those of the run, which does not run yet, for as long as meanwhile takes; then it leaves in order.
func (r *run) joining(ctx context.Context, meanwhile func(joins *node) error) error {
	if err := r.newNode(len(r.nodes)); err != nil {
		return err
	}
	last := len(r.nodes) - 1
	joins := r.nodes[last]
	err := meanwhile(joins)
	r.nodes = r.nodes[:last]
	if joins.running() == nil {
		return err
	}
	if failed := joins.running().Stop(stopWithin); failed != nil {
		r.crashed(role.Source(joins.Name, joins.running().PID()))
		r.broken(check.Clean, "it had joined, and was told to stop: %v", failed)
	}
	joins.calls.End()
	return err
}

// worksEvery is the time between the tasks that a node which joins is given of each shard.
const worksEvery = 500 * time.Millisecond

// works reports whether a node makes an attempt soon, where every shard has now and then a task that is not paused.
func (r *run) works(ctx context.Context, n *node) (worked bool, err error) {
	_, worked = until(ctx, heardWithin, func(ctx context.Context) bool {
		for shard := range record.Shards {
			asked := r.clients[shard%len(r.clients)].ask(ctx, traffic.Request{Verb: history.Submit, Task: idIn("joined", shard), Again: true,
				Params: traffic.Params{Millis: 1}})
			if ctx.Err() == nil { // or it was cut off: there is no more time
				err = errors.Join(err, unlessReplaced(asked))
			}
		}
		clock.Sleep(ctx, worksEvery)
		return err != nil || r.oracle.MadeBy(n.sessionID()) > 0
	})
	return worked, err
}

// pauseAndRestart pauses a behavior by a command, has a node join, ends every node at once as a crash does, starts them again, has the one
// that joined leave, and unpauses.
func pauseAndRestart(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	const behavior = "once"
	if err := r.terminal.operate(ctx, "pause", behavior); err != nil {
		return "all nodes", "", err
	}
	clock.Sleep(ctx, heardWithin)
	d.begins()
	err = r.joining(ctx, func(joins *node) error {
		if err := r.restart(ctx, joins); err != nil {
			return err
		}
		worked, err := r.works(ctx, joins)
		again := r.nodes[:len(r.nodes)-d.random.IntN(2)] // with the one that has joined, or without it
		err = errors.Join(err, r.beginAnew(ctx, again))
		clock.Sleep(ctx, pausedFor)
		if err == nil && worked {
			proof = fmt.Sprintf("%s stayed paused while %s joined and worked, and %d nodes ended and began anew", behavior, joins.Name, len(again))
		}
		return err
	})
	return "all nodes", proof, errors.Join(err, r.terminal.operate(context.WithoutCancel(ctx), "unpause", behavior))
}

// beginAnew ends nodes at once as a crash does, and starts them again. One that does not run yet joins.
func (r *run) beginAnew(ctx context.Context, nodes []*node) error {
	return eachOf(nodes, func(n *node) error {
		if p := n.running(); p != nil {
			if err := p.Kill(); err != nil {
				return err
			}
			r.crashed(role.Source(n.Name, p.PID()))
			n.calls.End()
		}
		return r.restart(ctx, n)
	})
}

// limitedTasks are enough to meet the limit of every node.
const limitedTasks = 24

// limitsAndRestart ends every node at once while more is ready of a behavior than its limit lets them do, and starts them again while
// another one joins: each must keep the limit, and use it.
func limitsAndRestart(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	target = "all nodes"
	err = eachOf(make([]struct{}, limitedTasks), sharing(limitedTasks, func(i int) error {
		return r.clients[i%len(r.clients)].ask(ctx, traffic.Request{Verb: history.Submit, Task: fmt.Sprint("limited-", d.round, "-", i), Again: true,
			Params: traffic.Params{Millis: 300}})
	}))
	if err != nil {
		return target, "", err
	}
	err = r.joining(ctx, func(joins *node) error {
		if err := r.beginAnew(ctx, r.nodes); err != nil {
			return err
		}
		if took, ok := until(ctx, 2*heardWithin, func(context.Context) bool { return r.meetLimits(joins) }); ok {
			proof = fmt.Sprintf("all nodes began anew, and %s joined; %s later one had made as many attempts at once as its limit lets it, and the one that joined some",
				joins.Name, round(took))
		}
		return nil
	})
	return target, proof, err
}

// meetLimits holds that every node keeps its limits, and reports whether any has reached one, and whoever joins has made attempts of those.
func (r *run) meetLimits(joins *node) (met bool) {
	helped := false
	for behavior, limit := range r.limits() {
		for _, n := range r.nodes {
			most := r.oracle.MostOn(n.sessionID(), behavior)
			if most > limit {
				r.broken(check.Served, "%s made %d attempts of %s at once, its limit is %d", n.sessionID(), most, behavior, limit)
			}
			met, helped = met || most >= limit, helped || n == joins && most > 0
		}
	}
	return met && helped
}

// quarantineAndRestart ends one node or all of them as a crash does while a shard is quarantined, and starts them again while another one
// joins: they serve the other shards, and say of this one what to do.
func quarantineAndRestart(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	nodes := slices.Clone(r.nodes)
	if d.random.IntN(2) == 0 {
		nodes = nodes[:1]
	}
	return r.besideAlien(ctx, d, func(shard int) error {
		return r.joining(ctx, func(joins *node) error {
			if err := r.beginAnew(ctx, append(nodes, joins)); err != nil {
				return err
			}
			r.servedBeside(ctx, shard, fmt.Sprintf("after %d nodes have begun anew and one has joined", len(nodes)))
			worked, err := r.works(ctx, joins)
			if !worked && err == nil && ctx.Err() == nil {
				r.broken(check.Served, "%s has joined beside a quarantined shard, and has made no attempt %s later", joins.Name, heardWithin)
			}
			return err
		})
	})
}

// servedBeside holds that another shard is served beside a quarantined one, which says what to do.
func (r *run) servedBeside(ctx context.Context, shard int, when string) {
	other := (shard + 1) % record.Shards
	took, ok := until(ctx, heardWithin, func(ctx context.Context) bool { return r.problemOf(ctx, other) == "" })
	if !ok && ctx.Err() == nil {
		r.broken(check.Served, "beside a quarantined shard, shard %d is not served %s %s: %s", other, took, when, r.problemOf(ctx, other))
	}
	if took, ok = until(ctx, heardWithin, func(ctx context.Context) bool { return strings.Contains(r.problemOf(ctx, shard), remedy) }); !ok && ctx.Err() == nil {
		r.broken(check.Served, "shard %d holds an alien entry, and says %q of it %s %s", shard, r.problemOf(ctx, shard), took, when)
	}
}
