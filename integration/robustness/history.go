package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/goleak"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/fault"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
)

// makeHistory starts a cluster, disturbs it, heals it and collects what it leaves behind. What keeps it from that is
// among the problems of the history; there is none, and an error, only when not even its directory can be made.
func makeHistory(ctx context.Context, s cluster.Settings) (h *history.Run, dir string, err error) {
	leaked := func() error { return nil }
	if !s.Beside {
		before := goleak.IgnoreCurrent()
		leaked = func() error { return leakedSince(before) }
	}
	random := rand.New(rand.NewPCG(s.Seed, 0))
	p, err := fault.NewPlan(random, s)
	var r *cluster.Cluster
	if err == nil {
		r, err = cluster.New(s, p.Needs(), random)
	}
	if err != nil {
		return nil, "", fmt.Errorf("history of seed %d: %w", s.Seed, err)
	}
	h = &history.Run{Info: history.Info{Kind: "real", Seed: s.Seed, Command: s.Command, Versions: cluster.Versions(), Shards: cluster.Shards,
		TTLMs: cluster.TTL.Milliseconds(), BoundMs: r.Bound().Milliseconds(), Limits: r.Limits(), Planned: p.Names()}}
	err = errors.Join(goThrough(ctx, r, h, p), ctx.Err())
	if err != nil && !errors.Is(err, cluster.ErrIdle) {
		r.Problem("%v", err)
	}
	remains(r, h, leaked, err)
	return h, r.Dir, nil
}

// goThrough goes through the phases of a history.
func goThrough(ctx context.Context, r *cluster.Cluster, h *history.Run, p fault.Plan) error {
	watch, endWatch := context.WithCancel(ctx)
	defer r.Keys.Wait()
	defer endWatch()
	if err := r.Start(ctx, watch); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	fault.Disturb(ctx, r, p)
	h.Info.Healed = history.Since(r.Begin)
	askAll(ctx, r)
	if h.Info.Commands = r.EndTerminal(); h.Info.Commands == 0 && r.Terminal != nil {
		r.Problem("no command that was typed was answered")
	}
	err := errors.Join(r.Submit(ctx, false), nameTasks(ctx, r), r.Settle(ctx))
	awaitFutures(ctx, r)
	h.Info.End, h.Info.EndWall = history.Since(r.Begin), time.Now().UnixMilli()
	return errors.Join(err, collect(ctx, r, h))
}

// askAll submits a task of every shard when the faults have healed: each must be accepted within the bound, and end
// like any other.
func askAll(ctx context.Context, r *cluster.Cluster) {
	ctx, cancel := context.WithTimeout(ctx, cluster.EndWithin)
	defer cancel()
	var asking sync.WaitGroup
	for shard := range cluster.Shards {
		asking.Go(func() {
			c := r.Clients[shard%len(r.Clients)]
			request := traffic.Request{Verb: history.Submit, Task: taskOf(shard), Params: traffic.Params{Millis: 1}}
			for !r.Operations.Acknowledged(request.Task) {
				if ctx.Err() != nil {
					r.Broken(check.Ended, "shard %d took no submit for %s after the faults", shard, cluster.EndWithin)
					return
				}
				if err := c.Ask(ctx, request); err != nil && ctx.Err() == nil {
					r.Problem("after the faults: %v", err)
					return
				}
				cluster.Sleep(ctx, 50*time.Millisecond)
			}
		})
	}
	asking.Wait()
}

// taskOf returns a task of a shard, that nobody else submits.
func taskOf(shard int) string { return cluster.IDIn("after", shard) }

// awaitFutures waits until every future has been told, those aside whose tasks are scheduled for much later. Those that
// have heard nothing by then are untold.
func awaitFutures(ctx context.Context, r *cluster.Cluster) {
	ctx, cancel := context.WithTimeout(ctx, futuresWithin)
	defer cancel()
	for ctx.Err() == nil {
		untold := slices.DeleteFunc(r.Operations.Waited(), func(id string) bool { return r.Later[id] })
		if len(untold) == 0 {
			return
		}
		cluster.Sleep(ctx, 50*time.Millisecond)
	}
}

// futuresWithin bounds the time that futures may take to hear of an outcome when every notification was lost: they ask
// after 5 s, then less and less often, at least once a minute.
const futuresWithin = 70 * time.Second
