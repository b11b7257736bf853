package world

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"taskledger/engine"
	"taskledger/integration/robustness/history"
	"taskledger/internal/modeletcd"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// tasks returns all tasks as their owners show them.
func (w *world) tasks(ctx context.Context) (all []projection.Task, err error) {
	for t, err := range w.clients[0].client.List(ctx, engine.Filter{Limit: 1000}) {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// someWait reports whether a task has still something to do.
func someWait(tasks []projection.Task) bool {
	for i := range tasks {
		if t := &tasks[i]; t.OnNode() || !t.Final() && !t.Suspended {
			return true
		}
	}
	return false
}

// eventsOf counts the events of tasks.
func eventsOf(tasks []projection.Task) (n uint64) {
	for i := range tasks {
		n += tasks[i].Seq
	}
	return n
}

// collect records what the owners show and what etcd and the archive hold.
func (w *world) collect() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	tasks, err := w.tasks(ctx)
	if err != nil {
		return fmt.Errorf("list all tasks: %w", err)
	}
	run := &w.record.run
	for i := range tasks {
		t := &tasks[i]
		outcome, err := outcomeOfTask(t)
		if err != nil {
			return fmt.Errorf("task %s: %w", t.ID, err)
		}
		run.Served = append(run.Served, history.Served{Task: string(t.ID), Status: t.Status.String(), Seq: t.Seq, Attempt: t.Attempt,
			Runs: t.Runs, Outcome: outcome})
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
	return nil
}

// note records a change of a key.
func (w *world) note(c *modeletcd.Change, written *history.Journals, held map[string]history.Record) error {
	path := strings.Split(strings.TrimPrefix(c.Key, cluster+"/"), "/")
	switch {
	case path[0] == "node":
		w.record.run.Keys = append(w.record.run.Keys, history.KeyChange{Revision: c.ModRevision, Node: path[1], Deleted: c.Deleted})
	case path[0] == "owner":
		shard, err1 := strconv.Atoi(path[1])
		session, err2 := decodeOwner(c)
		w.record.run.Keys = append(w.record.run.Keys, history.KeyChange{Revision: c.ModRevision, Shard: shard, Owner: session, Deleted: c.Deleted})
		return errors.Join(err1, err2)
	case path[0] == "journal" && c.Deleted:
		delete(held, c.Key)
		w.record.run.Info.Trimmed++
	case path[0] == "journal":
		shard, err1 := strconv.Atoi(path[1])
		number, err2 := strconv.ParseUint(path[2], 16, 64)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		r := history.Record{Number: number, Revision: c.ModRevision, Created: c.CreateRevision, Data: c.Value}
		written.Entries[shard] = append(written.Entries[shard], r)
		held[c.Key] = r
	}
	return nil
}

func decodeOwner(c *modeletcd.Change) (string, error) {
	if c.Deleted {
		return "", nil
	}
	if err := wire.Scan(c.Value); err != nil {
		return "", err
	}
	r := wire.NewReader(c.Value)
	r.Array()
	r.Uint() // version
	session := r.Text()
	return session, r.Err()
}

// stored returns what a reader finds of a shard: the archive, and then the journal.
func (w *world) stored(shard int, written *history.Journals, held map[string]history.Record) (all []history.Record) {
	var next uint64 = 1
	if w.shelf != nil {
		for _, s := range w.shelf.of(shard) {
			for _, r := range s.entries {
				all = append(all, history.Record{Number: r.Number, Revision: r.Revision, Data: r.Data})
			}
			next = s.head.Entry + 1
		}
	}
	for _, r := range written.Entries[shard] {
		if now, ok := held[fmt.Sprintf("%s/journal/%d/%016x", cluster, shard, r.Number)]; ok && r.Number >= next && r.Revision == now.Revision {
			all = append(all, r)
		}
	}
	return all
}

// remains records what is left when everybody has gone. quiet is what ran before anybody came.
func (w *world) remains(quiet int) {
	left := &w.record.run.Remains
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

// mayStay reports whether a key outlives processes.
func (w *world) mayStay(c *modeletcd.Change) bool {
	path := strings.Split(strings.TrimPrefix(c.Key, cluster+"/"), "/")
	sender := ""
	switch path[0] {
	case "meta", "owner", "journal", "snapshot":
		return true
	case "mailbox":
		if isSlot(c.Value) { // a late copy of what made it; a sweep removes it
			return true
		}
		sender = path[2]
	case "answer":
		sender = path[1]
	}
	after, gone := w.swept[sender]
	return gone && c.ModRevision > after
}

// isSlot reports whether a mailbox key holds no letter.
func isSlot(value []byte) bool {
	if wire.Scan(value) != nil {
		return false
	}
	r := wire.NewReader(value)
	r.Array()
	r.Uint() // version
	return len(r.Bytes()) == 0 && r.Err() == nil
}

// goroutines counts them, when those that are about to end have.
func goroutines() int {
	time.Sleep(time.Second)
	return runtime.NumGoroutine()
}
