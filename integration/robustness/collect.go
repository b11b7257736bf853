package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/projection"
)

const (
	// collectWithin bounds the reading of what a run has left behind.
	collectWithin = 60 * time.Second
	// pageEntries is how many entries one request reads.
	pageEntries = 500
)

// collect records what is in etcd, and what the owners say of it, at one revision: it begins again until nothing was
// written meanwhile.
func (r *run) collect(ctx context.Context, h *history.Run) error {
	ctx, cancel := context.WithTimeout(ctx, collectWithin)
	defer cancel()
	for {
		begin, err := r.mark(ctx)
		if err != nil {
			return err
		}
		if h.Served, err = r.served(ctx); err != nil {
			return err
		}
		revision, err := r.mark(ctx)
		if err != nil {
			return err
		}
		if h.Members, err = r.journals(ctx, revision); err != nil {
			return err
		}
		if !writtenSince(h.Members[0], begin) {
			h.Keys, err = r.recorder.all(ctx, revision)
			return errors.Join(err, r.verify(ctx))
		}
	}
}

// mark writes the mark, which shows that etcd takes writes, and returns its revision.
func (r *run) mark(ctx context.Context) (int64, error) {
	for {
		ask, cancel := context.WithTimeout(ctx, requestWithin)
		resp, err := r.members[0].client.Put(ask, mark, "")
		cancel()
		if err == nil {
			return resp.Header.Revision, nil
		}
		if sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return 0, fmt.Errorf("etcd takes no writes at the end: %w", err)
		}
	}
}

func writtenSince(j history.Journals, revision int64) bool {
	return slices.ContainsFunc(j.Entries, func(shard []history.Record) bool {
		return len(shard) > 0 && shard[len(shard)-1].Revision > revision
	})
}

// served asks the owners for every task.
func (r *run) served(ctx context.Context) (all []history.Served, err error) {
	var mu sync.Mutex
	r.look(ctx, r.done.tasks(), func(id string, t *projection.Task, failed error) {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil {
			err = fmt.Errorf("task %s at the end: %w", id, failed)
		} else if t != nil {
			all = append(all, history.Served{Task: id, Status: t.Status.String(), Seq: t.Seq, Attempt: t.Attempt, Runs: t.Runs,
				Outcome: traffic.OutcomeOf(t)})
		}
	})
	return all, err
}

// journals reads every journal from each member, without asking another, as of one revision.
func (r *run) journals(ctx context.Context, revision int64) ([]history.Journals, error) {
	all := make([]history.Journals, len(r.members))
	err := eachOf(r.members, func(m *member) error {
		j := history.Journals{Member: m.Name}
		for shard := range shards {
			records, err := m.journal(ctx, shard, revision)
			if err != nil {
				return fmt.Errorf("journal %d at %s: %w", shard, m.Name, err)
			}
			j.Entries = append(j.Entries, records)
		}
		all[slices.Index(r.members, m)] = j
		return nil
	})
	return all, err
}

func (m *member) journal(ctx context.Context, shard int, revision int64) (records []history.Record, err error) {
	journal := fmt.Sprintf("%sjournal/%d/", prefix, shard)
	from, end := journal, clientv3.GetPrefixRangeEnd(journal)
	for {
		resp, err := m.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageEntries), clientv3.WithRev(revision), clientv3.WithSerializable())
		if err != nil && strings.Contains(err.Error(), "future revision") && ctx.Err() == nil { // the member lags behind
			sleep(ctx, 50*time.Millisecond)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, kv := range resp.Kvs {
			record, err := recordOf(kv, journal)
			if err != nil {
				return nil, err
			}
			records = append(records, record)
			from = string(kv.Key) + "\x00"
		}
		if !resp.More {
			return records, nil
		}
	}
}

func recordOf(kv *mvccpb.KeyValue, journal string) (history.Record, error) {
	number, err := strconv.ParseUint(strings.TrimPrefix(string(kv.Key), journal), 16, 64)
	if err != nil {
		return history.Record{}, fmt.Errorf("key %s: %w", kv.Key, err)
	}
	return history.Record{Number: number, Revision: kv.ModRevision, Created: kv.CreateRevision, Data: kv.Value}, nil
}

// verify lets the engine judge snapshots and states, which the checkers do not read.
func (r *run) verify(ctx context.Context) error {
	for {
		all, err := r.clients[0].Verify(ctx, nil)
		if err != nil {
			return err
		}
		compared := true
		for _, v := range all {
			compared = compared && v.Compared
			if v.Problem != "" {
				r.damage = append(r.damage, fmt.Sprintf("verification of shard %d: %s", v.Shard, v.Problem))
			}
		}
		if compared || len(r.damage) > 0 {
			return nil
		}
		if sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("not every owner's state could be compared: %w", context.Cause(ctx))
		}
	}
}

// remains stops everything and records what is left. A history that could not be made only stops.
func (r *run) remains(h *history.Run, before goleak.Option, failed error) {
	others := r.damage
	note := func(err error) {
		if err != nil {
			others = append(others, err.Error())
		}
	}
	for _, l := range r.links {
		for _, l := range l.all() {
			l.Mend() // who stops over a dead connection cannot remove its mail, which is then swept, later than runs last
		}
	}
	note(eachOf(r.clients, (*client).stop))
	note(eachOf(r.nodes, func(n *node) error {
		if n.running() == nil {
			return nil
		}
		err := n.running().stop(stopWithin)
		n.calls.end()
		return err
	}))
	if failed == nil {
		note(r.leftInEtcd(&h.Remains))
	}
	note(r.cluster.stop())
	if r.log != nil {
		note(r.log.Close())
	}
	note(goleak.Find(before))
	h.Remains.Checked, h.Remains.Others = true, others
	h.Operations, h.Executions, h.Faults = r.done.all, r.oracle.all, r.faults
}

// leftInEtcd waits for the leases of killed nodes to run out, and then reads what is there.
func (r *run) leftInEtcd(left *history.Remains) error {
	ctx, cancel := context.WithTimeout(context.Background(), collectWithin)
	defer cancel()
	c := r.members[0].client
	for until := time.Now().Add(2*ttl + 2*time.Second); ; {
		leases, err := c.Leases(ctx)
		if err != nil {
			return fmt.Errorf("leases that remain: %w", err)
		}
		if left.Leases = len(leases.Leases); left.Leases == 0 || time.Now().After(until) {
			break
		}
		sleep(ctx, 100*time.Millisecond)
	}
	keys, err := c.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("keys that remain: %w", err)
	}
	for _, kv := range keys.Kvs {
		if key := string(kv.Key); !r.mayRemain(strings.TrimPrefix(key, prefix)) {
			left.Keys = append(left.Keys, key)
		}
	}
	return nil
}

// mayRemain reports whether a key, without prefix, is of those that outlive nodes. The mail of a node that was killed is swept
// later than runs last.
func (r *run) mayRemain(key string) bool {
	kind, _, _ := strings.Cut(key, "/")
	switch kind {
	case "meta", "owner", "journal", "snapshot":
		return true
	case "mailbox", "answer":
		return r.killed
	}
	return false
}
