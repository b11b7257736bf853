package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
)

const (
	// collectWithin bounds the reading of what a run has left behind.
	collectWithin = 60 * time.Second
	// pageEntries bounds the entries that one request reads.
	pageEntries = 500
)

// collect records what is in etcd and in the archive, and what the owners say of it, at one revision: it begins again
// until nothing was written meanwhile.
func collect(ctx context.Context, r *cluster.Cluster, h *history.Run) error {
	ctx, cancel := context.WithTimeout(ctx, collectWithin)
	defer cancel()
	for {
		begin, err := r.Mark(ctx)
		if err != nil {
			return err
		}
		h.Served = served(ctx, r)
		settings := readSettings(ctx, r)
		h.Info.Read = history.Since(r.Begin)
		revision, err := r.Mark(ctx)
		if err != nil {
			return err
		}
		held, err := journals(ctx, r, revision)
		if err != nil {
			return err
		}
		if !writtenSince(held[0], begin) {
			r.Operations.Add(settings)
			err := unite(ctx, r, r.Observer.Archive, h, held, revision)
			h.Info.Snapshots = verify(ctx, r)
			lookForBugs(ctx, r)
			return err
		}
	}
}

// unite records what was written up to a revision, and next to it what is stored of that: what each member holds, with
// what the archive does; nil: there is none.
func unite(ctx context.Context, r *cluster.Cluster, archive store.ArchiveReader, h *history.Run, held []history.Journals, revision int64) error {
	all, err := r.Keys.Until(ctx, revision)
	if err != nil {
		return err
	}
	h.Keys, h.Info.Trimmed = all.Keys, all.Trimmed
	if archive != nil {
		for i := range held {
			held[i].Member += " and archive"
		}
		for shard, kept := range archived(ctx, r, archive, all.Trimmed > 0) {
			h.Info.Archived += len(kept)
			for i := range held {
				held[i].Entries[shard] = union(cluster.EntriesUpTo(kept, revision), held[i].Entries[shard])
			}
		}
	}
	h.Members = append([]history.Journals{all.Written}, held...)
	return nil
}

func writtenSince(j history.Journals, revision int64) bool {
	return slices.ContainsFunc(j.Entries, func(shard []history.Record) bool {
		return len(shard) > 0 && shard[len(shard)-1].Revision > revision
	})
}

// archiveWithin bounds the time after the faults in which trimmed parts of tasks may be out of reach: a node finds
// within 30 s that its connection to NATS is half-open.
const archiveWithin = 35 * time.Second

// served asks the owners for every task, those of schedules as they are listed. It asks again for those that may have to be read
// from the archive.
func served(ctx context.Context, r *cluster.Cluster) (all []history.Served) {
	waiting := slices.Concat(r.Operations.Tasks(), cluster.RunsOfSchedules(ctx, r.Observer), cluster.Errands(ctx, r.Observer))
	slices.Sort(waiting)
	waiting = slices.Compact(waiting)
	for until := time.Now().Add(archiveWithin); len(waiting) > 0; cluster.Sleep(ctx, readAgain) {
		last := !r.Archives() || time.Now().After(until) || ctx.Err() != nil
		shown, left := shown(ctx, r, waiting, last)
		all, waiting = append(all, shown...), left
	}
	return all
}

// readSettings asks what the settings are at the end.
func readSettings(ctx context.Context, r *cluster.Cluster) history.Operation {
	ask, cancel := context.WithTimeout(ctx, archiveWithin)
	defer cancel()
	q := traffic.Request{Verb: history.Settings}
	op := q.Operation(0, r.Begin)
	q.Do(ask, r.Observer.Client, &op, r.Begin)
	if op.Answer != history.OK {
		r.Broken(check.Served, "the settings are not shown at the end: %s", op.Error)
	}
	return op
}

// shown asks the owners for tasks. Those that are not shown are damage the last time, and left before.
func shown(ctx context.Context, r *cluster.Cluster, ids []string, last bool) (all []history.Served, left []string) {
	var mu sync.Mutex
	r.Look(ctx, ids, func(id string, t *task.Task, err error) {
		if err == nil && t == nil {
			return
		}
		if err != nil && !last {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, id)
			return
		}
		if err != nil {
			r.Broken(check.Served, "task %s is not shown at the end: %v", id, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, traffic.Served(t))
	})
	return all, left
}

// journals reads every journal from each member, without asking another, as of one revision.
func journals(ctx context.Context, r *cluster.Cluster, revision int64) ([]history.Journals, error) {
	all := make([]history.Journals, len(r.Members))
	err := cluster.EachOf(r.Members, func(m *cluster.Member) error {
		j := history.Journals{Member: m.Name}
		for shard := range cluster.Shards {
			records, err := journalAt(ctx, m, shard, revision)
			if err != nil {
				return fmt.Errorf("journal %d at %s: %w", shard, m.Name, err)
			}
			j.Entries = append(j.Entries, records)
		}
		all[slices.Index(r.Members, m)] = j
		return nil
	})
	return all, err
}

func journalAt(ctx context.Context, m *cluster.Member, shard int, revision int64) (records []history.Record, err error) {
	journal := fmt.Sprintf("%sjournal/%d/", cluster.KeyPrefix, shard)
	from, end := journal, clientv3.GetPrefixRangeEnd(journal)
	for {
		resp, err := m.Client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageEntries), clientv3.WithRev(revision), clientv3.WithSerializable())
		if err != nil && strings.Contains(err.Error(), "future revision") && ctx.Err() == nil { // the member lags behind
			cluster.Sleep(ctx, 50*time.Millisecond)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, kv := range resp.Kvs {
			key, err := history.KeyOf(strings.TrimPrefix(string(kv.Key), cluster.KeyPrefix))
			if err != nil {
				return nil, err
			}
			records = append(records, cluster.RecordOf(key, kv))
			from = string(kv.Key) + "\x00"
		}
		if !resp.More {
			return records, nil
		}
	}
}

// lookForBugs asks the owners whether they have refused commands that they had decided wrongly.
func lookForBugs(ctx context.Context, r *cluster.Cluster) {
	all, err := r.Observer.Operations().Shards(ctx)
	if err != nil {
		r.Broken(check.Served, "what the shards hold is not told: %v", err)
	}
	for _, s := range all {
		if s.Bugs > 0 {
			r.Broken(check.Served, "the owner of shard %d has refused %d commands because of bugs", s.Shard, s.Bugs)
		}
	}
}

// verify lets the engine judge snapshots, archive and states, which the checkers do not read, and returns how many
// snapshots it judged.
func verify(ctx context.Context, r *cluster.Cluster) (snapshots int) {
	for {
		all, err := r.Observer.Ledger().Verify(ctx, ledger.VerifyOptions{Archive: r.Archives()})
		if err != nil {
			r.Broken(check.Served, "verification: %v", err)
			return snapshots
		}
		compared, sound := true, true
		snapshots = 0
		for _, v := range all {
			compared = compared && v.Compared
			snapshots += v.Snapshots
			if v.Problem != "" {
				sound = false
				r.Broken(check.Served, "verification of shard %d: %s", v.Shard, v.Problem)
			}
		}
		if compared || !sound {
			return snapshots
		}
		if cluster.Sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
			r.Broken(check.Served, "not every owner's state could be compared within %s", collectWithin)
			return snapshots
		}
	}
}

// remains stops everything and records what is left. A history that could not be made only stops.
func remains(r *cluster.Cluster, h *history.Run, leaked func() error, failed error) {
	var others []string
	note := func(err error) {
		if err != nil {
			others = append(others, err.Error())
		}
	}
	for _, l := range r.Links {
		for _, l := range l.All() {
			l.Mend() // who stops over a dead connection cannot remove its mail, which is then swept, later than runs last
		}
	}
	r.EndTerminal()
	note(cluster.EachOf(r.Clients, (*cluster.Client).Stop))
	note(r.Observer.Close())
	note(cluster.EachOf(r.Nodes, func(n *cluster.Node) error {
		if n.Running() == nil {
			return nil
		}
		err := n.Running().Stop(cluster.StopWithin)
		n.Calls.End()
		return err
	}))
	if failed == nil {
		note(leftInEtcd(r, h))
	}
	note(r.Servers.Stop())
	note(leaked())
	if err := readLogs(r); err != nil {
		r.Problem("%v", err)
	}
	h.Remains.Checked, h.Remains.Others = true, others
	h.Operations, h.Items, h.Executions = r.Operations.All(), r.Operations.Items(), r.Executions.All()
	h.Faults, h.Damage, h.Info.Problems = r.Faults, r.Damage, r.Problems
}

// leakTimeout bounds the time that goroutines of connections may take to end.
const leakTimeout = 10 * time.Second

// leakedSince looks for goroutines that were not there before.
func leakedSince(before goleak.Option) (err error) {
	for until := time.Now().Add(leakTimeout); ; {
		if err = goleak.Find(before); err == nil || time.Now().After(until) {
			return err
		}
	}
}

// alarms are the texts in the logs of nodes and clients that tell of a broken invariant which they survive, or that
// they did not.
var alarms = []struct{ text, invariant string }{
	{"panic:", check.Clean},
	{"fatal error:", check.Clean},
	{"WARNING: DATA RACE", check.Clean},
	{quarantined, check.Served},
	{"snapshot pointer cannot be read", check.Served},
	{"snapshot cannot be read", check.Served},
	{"recorded answers cannot be read", check.Served},
	{"answer does not fit its batch", check.Served},
	{"assignment of a behavior that was not offered", check.Served},
}

// quarantined is the message of a node about a corrupt shard.
const quarantined = "shard is quarantined"

// readLogs looks for alarms.
func readLogs(r *cluster.Cluster) error {
	for _, pattern := range []string{"node*.log", "client*.log", "observer.log"} {
		for _, a := range alarms {
			n, err := cluster.CountInLogs(r.Dir, pattern, regexp.QuoteMeta(a.text))
			if err != nil {
				return err
			}
			if a.text == quarantined {
				for shard := range r.Aliens {
					excused, err := cluster.CountInLogs(r.Dir, pattern, fmt.Sprintf(`%q node=\S+ session=\S+ shard=%d `, quarantined, shard))
					if err != nil {
						return err
					}
					n -= excused
				}
			}
			if n > 0 {
				r.Broken(a.invariant, "%d times in %s: %s", n, pattern, a.text)
			}
		}
	}
	return nil
}

// leftInEtcd waits for the leases of killed nodes to run out, and then reads what is there.
func leftInEtcd(r *cluster.Cluster, h *history.Run) error {
	left := &h.Remains
	ctx, cancel := context.WithTimeout(context.Background(), collectWithin)
	defer cancel()
	c := r.Members[0].Client
	for until := time.Now().Add(2*cluster.TTL + 2*time.Second); ; {
		leases, err := c.Leases(ctx)
		if err != nil {
			return fmt.Errorf("leases that remain: %w", err)
		}
		if left.Leases = len(leases.Leases); left.Leases == 0 || time.Now().After(until) {
			break
		}
		cluster.Sleep(ctx, 100*time.Millisecond)
	}
	keys, err := c.Get(ctx, cluster.KeyPrefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("keys that remain: %w", err)
	}
	may := senders(r, h)
	for _, kv := range keys.Kvs {
		path := string(kv.Key)
		if key, err := history.KeyOf(strings.TrimPrefix(path, cluster.KeyPrefix)); err != nil || !may.remain(key, kv.Value) {
			left.Keys = append(left.Keys, path)
		}
	}
	return nil
}

// dead are the senders whose mail may remain: they were killed, and a sweep comes later than runs last.
type dead struct {
	senders map[string]bool
	unknown int  // so many more, whose names nobody knows
	asking  bool // one of them may have asked for a plan, as a sender that made no task
}

// senders finds out who could not clean up: killed processes, by the tasks that they made, and commands, which say so.
func senders(r *cluster.Cluster, h *history.Run) *dead {
	d := &dead{senders: map[string]bool{}, asking: len(r.Killed) > 0}
	if r.Terminal != nil {
		for _, sender := range r.Terminal.Left {
			d.senders[sender] = true
		}
	}
	for _, source := range r.Killed {
		if sender := senderOf(h, source); sender != "" {
			d.senders[sender] = true
		} else {
			d.unknown++
		}
	}
	return d
}

// senderOf returns who sent the submits of a source; "" when none was committed.
func senderOf(h *history.Run, source string) string {
	for _, shard := range h.Members[0].Entries {
		for i := range shard {
			e, err := events.Decode(shard[i].Data)
			if err != nil {
				continue // the checkers tell
			}
			for j := range e.Events {
				ev := &e.Events[j]
				if ev.Kind() == events.KindCreated && ev.Origin != 0 && strings.HasPrefix(string(ev.Task), source+"-") {
					o := &e.Origins[ev.Origin-1]
					if o.Batch != 0 { // a caller behind the sender
						o = &e.Origins[o.Batch-1]
					}
					return o.Sender
				}
			}
		}
	}
	return ""
}

// remain reports whether a key is of those that outlive processes.
func (d *dead) remain(key history.Key, value []byte) bool {
	switch {
	case d.asking && key.Shard == cluster.Shards && (key.Kind == "mailbox" || key.Kind == "answer"):
		return true
	case key.Kind == "mailbox" && history.IsSlot(value): // a late copy of what made it
		return true
	case key.Kind == "mailbox", key.Kind == "answer":
		if !d.senders[key.Sender] && d.unknown > 0 { // it is one of them
			d.unknown--
			d.senders[key.Sender] = true
		}
		return d.senders[key.Sender]
	}
	return key.Outlives()
}

// nameTasks looks in all that was written, trimmed or not, for the ids of tasks whose clients did not live to tell
// them.
func nameTasks(ctx context.Context, r *cluster.Cluster) error {
	if !r.Operations.AnyUnnamed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, collectWithin)
	defer cancel()
	revision, err := r.Mark(ctx)
	if err != nil {
		return err
	}
	all, err := r.Keys.Until(ctx, revision)
	if err != nil {
		return err
	}
	r.Operations.Name(createdBy(all.Written))
	return nil
}

// createdBy returns the ids of the tasks that requests with a key created.
func createdBy(j history.Journals) map[traffic.Asked]string {
	tasks := map[traffic.Asked]string{}
	for _, shard := range j.Entries {
		for i := range shard {
			e, err := events.Decode(shard[i].Data)
			if err != nil {
				continue // the checkers tell
			}
			for j := range e.Events {
				ev := &e.Events[j]
				if b, made := ev.Body.(*events.Created); made && ev.RequestID != "" {
					tasks[traffic.Asked{By: ev.Caller.Principal + " " + b.Behavior, Request: events.RequestKey(ev.RequestID)}] = string(ev.Task)
				}
			}
		}
	}
	return tasks
}
