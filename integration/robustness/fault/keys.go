package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
)

const (
	// saidWithin is within what a shard must say that it cannot be served: 1 s, and what processes get on top that
	// share two processors.
	saidWithin = 4 * time.Second
	// healedWithin is within what a shard is served again once the damage is gone: it looks every 2 s.
	healedWithin = 10 * time.Second
	// remedy is part of what must be said of a damaged journal.
	remedy = "taskledger repair"
)

// until waits for something to become so, and returns how long that took.
func until(ctx context.Context, within time.Duration, so func(ctx context.Context) bool) (took time.Duration, ok bool) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for !so(ctx) {
		if cluster.Sleep(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return time.Since(began), false
		}
	}
	return time.Since(began), true
}

// problemOf returns the problem of a shard that is not served, "" when it is.
func problemOf(ctx context.Context, r *cluster.Cluster, shard int) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	all, err := r.Observer.Operations().Shards(ctx)
	if err != nil {
		return err.Error()
	}
	return all[shard].Problem
}

// writeAlien stores something where the next entry of a shard belongs.
func writeAlien(ctx context.Context, r *cluster.Cluster, shard int) (key string, err error) {
	c, journal := r.Members[0].Client, fmt.Sprintf("%sjournal/%d/", cluster.KeyPrefix, shard)
	for ctx.Err() == nil {
		ask, cancel := context.WithTimeout(ctx, cluster.RequestWithin)
		last, err := c.Get(ask, journal, clientv3.WithLastKey()...)
		if err == nil && len(last.Kvs) > 0 {
			var at history.Key
			if at, err = history.KeyOf(strings.TrimPrefix(string(last.Kvs[0].Key), cluster.KeyPrefix)); err == nil {
				key = fmt.Sprintf("%s%016x", journal, at.Number+1)
				var put *clientv3.TxnResponse
				put, err = c.Txn(ask).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, cluster.Strange)).Commit()
				if err == nil && put.Succeeded {
					cancel()
					return key, nil
				}
			}
		}
		cancel()
		if err != nil && !transient(err) {
			return "", err
		}
	}
	return "", context.Cause(ctx)
}

// alienEntry stores something where the next entry of a shard belongs, and has a command remove it.
func alienEntry(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	return besideAlien(ctx, r, d, func(int) error { return nil })
}

// besideAlien stores something where the next entry of a shard belongs, goes on with what happens meanwhile, and has a
// command remove it. The shard must say what to do, and be served again then.
func besideAlien(ctx context.Context, r *cluster.Cluster, d disturbance, meanwhile func(shard int) error) (target, proof string, err error) {
	shard := d.random.IntN(cluster.Shards)
	target = fmt.Sprint("shard ", shard)
	key, err := writeAlien(ctx, r, shard)
	if err != nil {
		return target, "", err
	}
	r.Aliens[shard] = true
	defer func() { // whatever else went wrong: the history goes on
		_, gone := r.Members[0].Client.Txn(context.WithoutCancel(ctx)).If(clientv3.Compare(clientv3.Value(key), "=", cluster.Strange)).Then(clientv3.OpDelete(key)).Commit()
		err = errors.Join(err, gone)
	}()
	said, ok := until(ctx, saidWithin, func(ctx context.Context) bool { return strings.Contains(problemOf(ctx, r, shard), remedy) })
	if !ok && ctx.Err() == nil {
		r.Broken(check.Served, "shard %d holds an alien entry, and says %q of it %s later", shard, problemOf(ctx, r, shard), said)
		return target, "", nil
	}
	if err := r.Clients[0].Ask(ctx, traffic.Request{Verb: history.Submit, Task: cluster.IDIn("damaged", shard)}); err != nil {
		return target, "", err
	}
	if refusal := r.Terminal.Operate(ctx, "get", cluster.IDIn("damaged", shard)); refusal == nil || !strings.Contains(refusal.Error(), remedy) {
		r.Broken(check.Served, "shard %d holds an alien entry, and a command is told: %v", shard, refusal)
	}
	cluster.Sleep(ctx, d.duration)
	if err := meanwhile(shard); err != nil {
		return target, "", err
	}
	healed, ok := repairShard(ctx, r, shard)
	if ok {
		proof = fmt.Sprintf("%s was no entry: the shard said so after %s, and was served %s after the repair", key, round(said), round(healed))
	}
	return target, proof, nil
}

// repairShard has a command remove what is no entry, and returns how long it took then until the shard was served.
func repairShard(ctx context.Context, r *cluster.Cluster, shard int) (healed time.Duration, ok bool) {
	if err := r.Terminal.Operate(ctx, "repair", "--yes"); err != nil {
		r.Broken(check.Served, "an alien entry of shard %d is not removed: %v", shard, err)
		return 0, false
	}
	healed, ok = until(ctx, healedWithin, func(ctx context.Context) bool { return problemOf(ctx, r, shard) == "" })
	if !ok && ctx.Err() == nil {
		r.Broken(check.Served, "shard %d is not served %s after it was repaired: %s", shard, healed, problemOf(ctx, r, shard))
	}
	return healed, ok
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// damageOwner writes into the owner key of a shard what cannot be read: another owner takes it by its revision.
func damageOwner(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	shard := d.random.IntN(cluster.Shards)
	target = fmt.Sprint("shard ", shard)
	put, err := r.Members[0].Client.Put(ctx, fmt.Sprintf("%sowner/%d", cluster.KeyPrefix, shard), cluster.Strange)
	if err != nil {
		return target, "", err
	}
	took, ok := until(ctx, saidWithin, func(context.Context) bool { return r.Keys.OwnedSince(shard, put.Header.Revision) != "" })
	if !ok && ctx.Err() == nil {
		r.Broken(check.Served, "nobody has taken shard %d %s after its owner key was damaged", shard, took)
		return target, "", nil
	}
	cluster.Sleep(ctx, d.duration)
	return target, fmt.Sprintf("damaged at revision %d; %s had it after %s", put.Header.Revision, r.Keys.OwnedSince(shard, put.Header.Revision), round(took)), nil
}

// damageNode puts the key of a session without a lease: the session is over, its node begins another, and a command
// removes the key.
func damageNode(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	n := r.Nodes[d.random.IntN(len(r.Nodes))]
	session := n.SessionID()
	target = n.Name + " " + session
	key := cluster.KeyPrefix + "node/" + session
	put, err := r.Members[0].Client.Txn(ctx).If(clientv3.Compare(clientv3.LeaseValue(key), "!=", 0)).Then(clientv3.OpPut(key, cluster.Strange)).Commit()
	if err != nil || !put.Succeeded { // the session had ended already
		return target, "", err
	}
	took, ok := until(ctx, saidWithin, func(context.Context) bool { return n.SessionID() != session })
	if !ok && ctx.Err() == nil {
		r.Broken(check.Served, "%s has no other session %s after the key of %s lost its lease", n.Name, took, session)
	}
	cluster.Sleep(ctx, d.duration)
	if err := r.Terminal.Operate(ctx, "repair", "--yes"); err != nil && ctx.Err() == nil {
		r.Broken(check.Served, "%s without a lease is not removed: %v", key, err)
	}
	if ok {
		proof = fmt.Sprintf("damaged at revision %d; its node had another session after %s", put.Header.Revision, round(took))
	}
	return target, proof, nil
}

// strayOwner writes an owner key of a shard that there is not: it is shown, and ignored.
func strayOwner(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	const key = cluster.KeyPrefix + "owner/99"
	target = "no shard"
	before := sessions(r)
	if _, err := r.Members[0].Client.Put(ctx, key, cluster.Strange); err != nil {
		return target, "", err
	}
	defer func() {
		_, gone := r.Members[0].Client.Delete(context.WithoutCancel(ctx), key)
		err = errors.Join(err, gone)
	}()
	cluster.Sleep(ctx, d.duration)
	shown, err := r.Terminal.Output(ctx, "repair")
	if err != nil || !strings.Contains(shown, key) {
		r.Broken(check.Served, "%s is of no shard, and repair shows %q: %v", key, shown, err)
		return target, "", nil
	}
	if after := sessions(r); !slices.Equal(before, after) {
		r.Broken(check.Served, "nodes began anew beside a key of no shard: %q, then %q", before, after)
	}
	return target, "repair shows " + key, nil
}

// sessions returns the sessions of the nodes.
func sessions(r *cluster.Cluster) (all []string) {
	for _, n := range r.Nodes {
		all = append(all, n.SessionID())
	}
	return all
}

// removeMeta removes what the cluster was founded with, and restores it as an operator does: meanwhile its nodes go on,
// and no other one founds another cluster.
func removeMeta(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	const key = cluster.KeyPrefix + "meta"
	target = "meta"
	c := r.Members[0].Client
	was, err := c.Get(ctx, key)
	if err != nil || len(was.Kvs) == 0 {
		return target, "", fmt.Errorf("read %s: %w", key, err)
	}
	if _, err := c.Delete(ctx, key); err != nil {
		return target, "", err
	}
	defer func() {
		_, restored := c.Put(context.WithoutCancel(ctx), key, string(was.Kvs[0].Value))
		err = errors.Join(err, restored)
	}()
	answered := r.Operations.Answered()
	cluster.Sleep(ctx, d.duration)
	limited, cancel := context.WithTimeout(ctx, cluster.StartWithin)
	defer cancel()
	began := time.Now()
	refusal := r.Terminal.Operate(limited, "serve")
	now, err := c.Get(ctx, key)
	switch {
	case err != nil || ctx.Err() != nil:
		return target, "", err
	case len(now.Kvs) > 0:
		r.Broken(check.Served, "another cluster was founded over the journals")
	case refusal == nil || limited.Err() != nil || !strings.Contains(refusal.Error(), "restore it"):
		r.Broken(check.Served, "a node that finds no %s ends after %s: %v", key, time.Since(began), refusal)
	case r.Operations.Answered() > answered:
		proof = fmt.Sprintf("%d operations were answered without it, and no other node began", r.Operations.Answered()-answered)
	}
	return target, proof, nil
}
