package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
)

// endedWithin is within what a task of 1 ms has ended in a cluster that has nothing else to do: as saidWithin.
const endedWithin = 4 * time.Second

// clockAlarms lists the messages of a node that takes a clock for wrong.
var clockAlarms = []string{"whether the clock is right has changed", "clock differs from the other nodes'"}

// beQuiet has everybody stop asking, and lets minutes pass once all has ended. No shard may change hands meanwhile, and
// no clock may be taken for wrong. Then a task of every shard must end at once.
func beQuiet(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	target = "everybody"
	defer func() { err = errors.Join(err, submitting(context.WithoutCancel(ctx), r, true)) }()
	if err := errors.Join(submitting(ctx, r, false), r.Settle(ctx)); err != nil {
		return target, "", err
	}
	cluster.Sleep(ctx, heardWithin) // what earlier faults have moved comes to rest
	alarmsBefore, err := countClockAlarms(r)
	if err != nil {
		return target, "", err
	}
	revision, err := r.Mark(ctx)
	if err != nil {
		return target, "", err
	}
	from := history.Since(r.Begin)
	cluster.Sleep(ctx, d.duration)
	asked, ran := since(r, from)
	for shard := range cluster.Shards {
		if owner := r.Keys.OwnedSince(shard, revision); owner != "" {
			r.Broken(check.Served, "shard %d went to %s although nobody had asked for anything for %s at least", shard, owner, heardWithin)
		}
	}
	alarms, err := countClockAlarms(r)
	if err != nil || ctx.Err() != nil {
		return target, "", err
	}
	if alarms > alarmsBefore {
		r.Broken(check.Served, "%d times a clock was taken for wrong while nobody asked for anything", alarms-alarmsBefore)
	}
	most, err := endPromptly(ctx, r, fmt.Sprint("quiet-", d.round))
	if asked == 0 {
		proof = fmt.Sprintf("nobody asked for anything for %s, in which %d attempts began; then each task had ended after %s", d.duration, ran, round(most))
	}
	return target, proof, err
}

// countClockAlarms counts how often a node has taken a clock for wrong.
func countClockAlarms(r *cluster.Cluster) (n int, err error) {
	for _, text := range clockAlarms {
		more, failed := cluster.CountInLogs(r.Dir, "node*.log", text)
		n, err = n+more, errors.Join(err, failed)
	}
	return n, err
}

// since counts what was asked since a time, and the attempts that have begun.
func since(r *cluster.Cluster, from int64) (asked, ran int) {
	for _, o := range r.Operations.All() {
		if o.Call >= from {
			asked++
		}
	}
	for _, e := range r.Executions.All() {
		if e.Begin >= from {
			ran++
		}
	}
	return asked, ran
}

// endPromptly submits a task of every shard, one after the other, and returns how long one took at most: each must end
// within endedWithin.
func endPromptly(ctx context.Context, r *cluster.Cluster, prefix string) (most time.Duration, err error) {
	for shard := range cluster.Shards {
		id := cluster.IDIn(prefix, shard)
		began := time.Now()
		if err := r.Clients[shard%len(r.Clients)].Ask(ctx, traffic.Request{Verb: history.Submit, Task: id, Params: traffic.Params{Millis: 1}}); err != nil {
			return most, err
		}
		ended := func(context.Context) bool { return r.Operations.Acknowledged(id) && r.Executions.IsOver(id) }
		if _, ok := until(ctx, endedWithin-time.Since(began), ended); !ok && ctx.Err() == nil {
			r.Broken(check.Ended, "task %s had not ended %s after its submit (acknowledged: %t), in a cluster that had nothing else to do",
				id, time.Since(began), r.Operations.Acknowledged(id))
		}
		most = max(most, time.Since(began))
	}
	return most, nil
}
