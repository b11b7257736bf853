package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/history"
)

const (
	// prefix is that of the keys of a cluster without a name of its own.
	prefix = "taskledger/"
	// mark is a key of the driver's, whose revision ends a run; the recorder watches it with the cluster's keys.
	mark    = "taskledger-mark"
	watched = "taskledger"
)

// recorder follows the keys of nodes, owners and entries from the first revision on, at every member: while one is down, another
// tells.
type recorder struct {
	watching sync.WaitGroup
	begin    int64 // of the run

	mu      sync.Mutex
	last    int64 // revision up to which all is known
	changes []history.KeyChange
	written [shards][]history.Record
	trimmed int             // entries that were removed
	aliens  map[string]bool // keys that somebody has written who is none of the cluster, and who may remove them
	problem error
}

// start begins to follow; nothing may have been written yet. It ends with ctx.
func (r *recorder) start(ctx context.Context, members []*member) {
	for _, m := range members {
		r.watching.Go(func() { r.watch(ctx, m.client) })
	}
}

// watch follows one member. A watch that breaks goes on after what any member has told.
func (r *recorder) watch(ctx context.Context, c *clientv3.Client) {
	for ctx.Err() == nil {
		w, end := context.WithCancel(ctx)
		for resp := range c.Watch(w, watched, clientv3.WithPrefix(), clientv3.WithRev(r.seen()+1)) {
			if resp.Err() != nil {
				break
			}
			r.note(resp)
		}
		end()
		clock.Sleep(ctx, 100*time.Millisecond)
	}
}

// seen is the revision up to which nothing is missing.
func (r *recorder) seen() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *recorder) note(resp clientv3.WatchResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last
	for _, e := range resp.Events {
		if e.Kv.ModRevision <= r.last {
			continue
		}
		last = e.Kv.ModRevision
		path, of := strings.CutPrefix(string(e.Kv.Key), prefix)
		if !of {
			continue
		}
		if err := r.noteKey(path, e); err != nil {
			r.problem = err
		}
	}
	r.last = max(last, r.last)
}

// noteKey notes a change of a key of the cluster's; r.mu is held.
func (r *recorder) noteKey(path string, e *clientv3.Event) error {
	deleted := e.Type == clientv3.EventTypeDelete
	key, err := history.KeyOf(path)
	if err != nil {
		return err
	}
	if r.aliens == nil {
		r.aliens = map[string]bool{}
	}
	if was := r.aliens[path]; string(e.Kv.Value) == strange || was && deleted {
		r.aliens[path] = !deleted
		if key.Kind == "owner" && key.Shard < shards && !deleted { // it ends whoever owned the shard
			r.changes = append(r.changes, history.KeyChange{Revision: e.Kv.ModRevision, At: clock.Since(r.begin), Shard: key.Shard})
		}
		if key.Kind == "node" && !deleted { // it is without a lease, which ends the session
			r.changes = append(r.changes, history.KeyChange{Revision: e.Kv.ModRevision, At: clock.Since(r.begin), Node: key.Sender, Deleted: true})
		}
		return nil
	}
	switch {
	case key.Kind != "journal":
	case key.Shard < 0 || key.Shard >= shards:
		return fmt.Errorf("key %s: there are %d shards", path, shards)
	case deleted:
		r.trimmed++
	default:
		r.written[key.Shard] = append(r.written[key.Shard], recordOf(key, e.Kv))
	}
	change, of, err := key.Change(e.Kv.Value, e.Kv.ModRevision, deleted)
	change.At = clock.Since(r.begin)
	if of && err == nil {
		r.changes = append(r.changes, change)
	}
	return err
}

// recordOf is the entry under a key of a journal.
func recordOf(key history.Key, kv *mvccpb.KeyValue) history.Record {
	return history.Record{Number: key.Number, Revision: kv.ModRevision, Created: kv.CreateRevision, Data: kv.Value}
}

// gone reports whether the key of a session has been deleted.
func (r *recorder) gone(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.changes, func(c history.KeyChange) bool { return c.Node == session && c.Deleted })
}

// owners returns the session that each owner key names.
func (r *recorder) owners() (all [shards]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.changes {
		if c.Node == "" && c.Shard >= 0 && c.Shard < shards {
			all[c.Shard] = c.Owner
		}
	}
	return all
}

// ownedSince returns the session that has become the owner of a shard after a revision, "" when none has.
func (r *recorder) ownedSince(shard int, revision int64) (owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.changes {
		if c.Node == "" && c.Shard == shard && c.Revision > revision {
			owner = c.Owner
		}
	}
	return owner
}

// recorded is what a recorder knows.
type recorded struct {
	keys    []history.KeyChange
	written history.Journals // every entry, trimmed ones included, as often as it was written
	trimmed int
}

// all waits until everything up to the revision is known, and returns it; of entries nothing later.
func (r *recorder) all(ctx context.Context, revision int64) (recorded, error) {
	for r.seen() < revision {
		if clock.Sleep(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return recorded{}, fmt.Errorf("changes of keys are known up to revision %d, not up to %d: %w", r.seen(), revision, context.Cause(ctx))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := recorded{slices.Clone(r.changes), history.Journals{Member: "written"}, r.trimmed}
	for _, records := range r.written {
		all.written.Entries = append(all.written.Entries, upTo(records, revision))
	}
	return all, r.problem
}
