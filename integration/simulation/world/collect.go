package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/internal/modeletcd"
	"taskledger/ledger"
	"taskledger/task"
)

// tasks returns all tasks as their owners show them.
func (w *world) tasks(ctx context.Context) (all []task.Task, err error) {
	for t, err := range w.clients[0].client.List(ctx, task.Filter{Limit: 1000}) {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// settledWithin is the time within which the settings are told when the cluster is quiet.
const settledWithin = 5 * time.Second

// readSettings has somebody read what the settings are at the end.
func (w *world) readSettings() {
	if op := w.caller().settings(w.clients[0], settledWithin); op.Answer != history.OK {
		w.record.Damage(served, "the settings are not shown at the end: %s", op.Error)
	}
}

// substatuses returns the words under which the owners list each task.
func (w *world) substatuses(ctx context.Context) (map[events.TaskID]string, error) {
	words := map[events.TaskID]string{}
	for i, word := range task.Substatuses() {
		for t, err := range w.clients[0].client.List(ctx, task.Filter{Substatus: task.Substatus(i + 1), Limit: 1000}) {
			if err != nil {
				return nil, err
			}
			words[t.ID] = strings.TrimSpace(words[t.ID] + " " + word)
		}
	}
	return words, nil
}

// collect records what the owners show and what etcd and the archive hold.
func (w *world) collect() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if w.waitCtx.Err() == nil { // else somebody waited in vain, which is damage enough
		w.readSettings()
		w.storeClients.Read()
	}
	tasks, err := w.tasks(ctx)
	if err != nil {
		return fmt.Errorf("list all tasks: %w", err)
	}
	words, err := w.substatuses(ctx)
	if err != nil {
		return fmt.Errorf("list tasks by substatus: %w", err)
	}
	run := &w.record.Run
	run.Feeds = w.feeds.History()
	for i := range tasks {
		t := &tasks[i]
		served := traffic.Served(t)
		served.Substatus = words[t.ID]
		run.Served = append(run.Served, served)
	}
	changes := w.etcd.History(1)
	written, stored := history.Journals{Member: "written", Entries: make([][]history.Record, w.shards)},
		history.Journals{Member: "stored", Entries: make([][]history.Record, w.shards)}
	held := map[string]history.Record{} // the entries that have not been trimmed
	for _, c := range changes {
		if err := w.note(&c, &written, held); err != nil {
			return fmt.Errorf("key %s: %w", c.Key, err)
		}
	}
	for shard := range stored.Entries {
		stored.Entries[shard] = w.stored(shard, &written, held)
	}
	run.Members = []history.Journals{written, stored}
	return w.verify(ctx)
}

// verify lets the engine judge snapshots, archive and the states of the owners, which the checkers do not read.
func (w *world) verify(ctx context.Context) error {
	for {
		all, err := w.clients[0].client.Ledger().Verify(ctx, ledger.VerifyOptions{Archive: w.archive != nil})
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		if !slices.ContainsFunc(all, func(v ledger.Verification) bool { return !v.Compared && v.Problem == "" }) {
			for _, v := range all {
				if v.Problem != "" {
					w.record.Damage(served, "verification of shard %d: %s", v.Shard, v.Problem)
				}
			}
			return nil
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return errors.New("not every owner's state could be compared")
		}
	}
}

// note records a change of a key.
func (w *world) note(c *modeletcd.Change, written *history.Journals, held map[string]history.Record) error {
	key, err := history.KeyOf(path(c))
	if err != nil {
		return err
	}
	info := &w.record.Run.Info
	switch {
	case key.Kind == "journal" && w.strange[c.ModRevision]:
		return nil
	case key.Kind == "journal" && c.Deleted:
		delete(held, c.Key)
		info.Trimmed++
	case key.Kind == "journal":
		r := history.Record{Number: key.Number, Revision: c.ModRevision, Created: c.CreateRevision, At: int64(c.At.Sub(w.record.Began)), Data: c.Value}
		written.Entries[key.Shard] = append(written.Entries[key.Shard], r)
		held[c.Key] = r
	case key.Kind == "snapshot" && strings.Count(c.Key, "/") == 2 && !c.Deleted:
		info.Snapshots++
	}
	if w.strange[c.ModRevision] {
		if key.Shard < w.shards { // it ends whoever owned the shard
			w.record.Run.Keys = append(w.record.Run.Keys, history.KeyChange{Revision: c.ModRevision, Shard: key.Shard})
		}
		return nil
	}
	change, of, err := key.Change(c.Value, c.ModRevision, c.Deleted)
	change.At = int64(c.At.Sub(w.record.Began))
	if of {
		w.record.Run.Keys = append(w.record.Run.Keys, change)
	}
	return err
}

// path returns the key of a change without the name of the cluster.
func path(c *modeletcd.Change) string { return strings.TrimPrefix(c.Key, cluster+"/") }

// stored returns what a reader finds of a shard: the archive, and then the journal.
func (w *world) stored(shard int, written *history.Journals, held map[string]history.Record) (all []history.Record) {
	var next uint64 = 1
	if w.archive != nil {
		for _, r := range w.archive.Records(shard) {
			all = append(all, history.Record{Number: r.Number, Revision: r.Revision, Data: r.Data})
			next = r.Number + 1
		}
	}
	for _, r := range written.Entries[shard] {
		if now, ok := held[fmt.Sprintf("%s/journal/%d/%016x", cluster, shard, r.Number)]; ok && r.Number >= next && r.Revision == now.Revision {
			all = append(all, r)
		}
	}
	return all
}

// remains records what is left when everybody has gone. quiet counts the goroutines that ran before anybody came.
func (w *world) remains(quiet int) {
	left := &w.record.Run.Remains
	left.Checked = true
	left.Leases = len(w.etcd.Leases())
	now := map[string]modeletcd.Change{}
	for _, c := range w.etcd.History(1) {
		now[c.Key] = c
		if c.Deleted {
			delete(now, c.Key)
		}
	}
	for key, c := range now {
		if !w.mayStay(&c) {
			left.Keys = append(left.Keys, key)
		}
	}
	if n := goroutines(); n > quiet {
		stacks := make([]byte, 1<<20)
		left.Others = append(left.Others, fmt.Sprintf("%d goroutines more than before\n%s", n-quiet, stacks[:runtime.Stack(stacks, true)]))
	}
}

// mayStay reports whether a key outlives processes: also mail that a sender left behind and a sweep removes.
func (w *world) mayStay(c *modeletcd.Change) bool {
	key, err := history.KeyOf(path(c))
	switch {
	case err != nil:
		return false
	case key.Outlives(), key.Kind == "mailbox" && history.IsSlot(c.Value):
		return true
	case key.Kind != "mailbox" && key.Kind != "answer" || key.Sender == "":
		return false
	case key.Shard == w.shards: // the box for plans, where who asks is a sender of its own: of a process that could not remove its mail
		return slices.Contains(slices.Collect(maps.Values(w.swept)), 0)
	}
	after, gone := w.swept[key.Sender]
	return gone && c.ModRevision > after
}

// goroutines counts them, when those that are about to end have.
func goroutines() int {
	time.Sleep(time.Second)
	return runtime.NumGoroutine()
}
