package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/integration/robustness/history"
)

const (
	// Shards is the number of shards in the cluster of every run.
	Shards = 8
	// KeyPrefix begins the keys of a cluster without a name of its own.
	KeyPrefix = "taskledger/"
	// MarkKey is a key of the driver's, whose revision ends a run; it is watched with the cluster's keys.
	MarkKey = "taskledger-mark"
	// WatchedKeys begins all keys that are followed.
	WatchedKeys = "taskledger"
	// Strange is the value that a stranger writes into keys of the cluster.
	Strange = "written by nobody of the cluster"
)

// Keys is the record of the keys of nodes, owners and entries. It follows them from the first revision on, at every
// member: while one is down, another tells. Its methods may be called concurrently.
type Keys struct {
	watching sync.WaitGroup
	begin    int64 // of the run

	mu      sync.Mutex
	last    int64 // revision up to which all is known
	changes []history.KeyChange
	written [Shards][]history.Record
	trimmed int             // entries that were removed
	aliens  map[string]bool // keys that somebody has written who is none of the cluster, and who may remove them
	problem error
}

// Start begins to follow a run that has begun then, at every member; nothing may have been written yet. It ends with
// ctx.
func (r *Keys) Start(ctx context.Context, begin int64, members []*clientv3.Client) {
	r.begin = begin
	for _, m := range members {
		r.watching.Go(func() { r.watch(ctx, m) })
	}
}

// Wait returns when nothing is followed any more.
func (r *Keys) Wait() { r.watching.Wait() }

// watch follows one member. A watch that breaks goes on after what any member has told.
func (r *Keys) watch(ctx context.Context, c *clientv3.Client) {
	for ctx.Err() == nil {
		w, end := context.WithCancel(ctx)
		for resp := range c.Watch(w, WatchedKeys, clientv3.WithPrefix(), clientv3.WithRev(r.Seen()+1)) {
			if resp.Err() != nil {
				break
			}
			r.Hear(resp)
		}
		end()
		Sleep(ctx, 100*time.Millisecond)
	}
}

// Seen is the revision up to which nothing is missing.
func (r *Keys) Seen() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Hear takes what a member tells of changes, some of which others may have told.
func (r *Keys) Hear(resp clientv3.WatchResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last
	for _, e := range resp.Events {
		if e.Kv.ModRevision <= r.last {
			continue
		}
		last = e.Kv.ModRevision
		path, of := strings.CutPrefix(string(e.Kv.Key), KeyPrefix)
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
func (r *Keys) noteKey(path string, e *clientv3.Event) error {
	deleted := e.Type == clientv3.EventTypeDelete
	key, err := history.KeyOf(path)
	if err != nil {
		return err
	}
	if r.aliens == nil {
		r.aliens = map[string]bool{}
	}
	if was := r.aliens[path]; string(e.Kv.Value) == Strange || was && deleted {
		r.aliens[path] = !deleted
		if key.Kind == "owner" && key.Shard < Shards && !deleted { // it ends whoever owned the shard
			r.changes = append(r.changes, history.KeyChange{Revision: e.Kv.ModRevision, At: history.Since(r.begin), Shard: key.Shard})
		}
		if key.Kind == "node" && !deleted { // it is without a lease, which ends the session
			r.changes = append(r.changes, history.KeyChange{Revision: e.Kv.ModRevision, At: history.Since(r.begin), Node: key.Sender, Deleted: true})
		}
		return nil
	}
	switch {
	case key.Kind != "journal":
	case key.Shard < 0 || key.Shard >= Shards:
		return fmt.Errorf("key %s: there are %d shards", path, Shards)
	case deleted:
		r.trimmed++
	default:
		r.written[key.Shard] = append(r.written[key.Shard], RecordOf(key, e.Kv))
	}
	change, of, err := key.Change(e.Kv.Value, e.Kv.ModRevision, deleted)
	change.At = history.Since(r.begin)
	if of && err == nil {
		r.changes = append(r.changes, change)
	}
	return err
}

// RecordOf is the entry under a key of a journal.
func RecordOf(key history.Key, kv *mvccpb.KeyValue) history.Record {
	return history.Record{Number: key.Number, Revision: kv.ModRevision, Created: kv.CreateRevision, Data: kv.Value}
}

// Gone reports whether the key of a session has been deleted.
func (r *Keys) Gone(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.changes, func(c history.KeyChange) bool { return c.Node == session && c.Deleted })
}

// Owners returns the session that each owner key names.
func (r *Keys) Owners() (all [Shards]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.changes {
		if c.Node == "" && c.Shard >= 0 && c.Shard < Shards {
			all[c.Shard] = c.Owner
		}
	}
	return all
}

// OwnedSince returns the session that has become the owner of a shard after a revision, "" when none has.
func (r *Keys) OwnedSince(shard int, revision int64) (owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.changes {
		if c.Node == "" && c.Shard == shard && c.Revision > revision {
			owner = c.Owner
		}
	}
	return owner
}

// Writes holds what was written to the keys up to a revision.
type Writes struct {
	Keys    []history.KeyChange
	Written history.Journals // every entry, trimmed ones included, as often as it was written
	Trimmed int
}

// Until waits until everything up to the revision is known, and returns it; of entries nothing later.
func (r *Keys) Until(ctx context.Context, revision int64) (Writes, error) {
	for r.Seen() < revision {
		if Sleep(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return Writes{}, fmt.Errorf("changes of keys are known up to revision %d, not up to %d: %w", r.Seen(), revision, context.Cause(ctx))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := Writes{slices.Clone(r.changes), history.Journals{Member: "written"}, r.trimmed}
	for _, records := range r.written {
		all.Written.Entries = append(all.Written.Entries, EntriesUpTo(records, revision))
	}
	return all, r.problem
}

// EntriesUpTo returns the entries that were written up to a revision.
func EntriesUpTo(all []history.Record, revision int64) []history.Record {
	return slices.DeleteFunc(slices.Clone(all), func(r history.Record) bool { return r.Revision > revision })
}
