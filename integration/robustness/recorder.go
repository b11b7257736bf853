package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/integration/robustness/history"
)

const (
	// prefix is that of the keys of a cluster without a name of its own.
	prefix = "taskledger/"
	// mark is a key of the driver's, whose revision ends a run; the recorder watches it with the cluster's keys.
	mark    = "taskledger-mark"
	watched = "taskledger"
)

// recorder follows the keys of nodes and owners from the first revision on, at every member: while one is down, another
// tells.
type recorder struct {
	watching sync.WaitGroup

	mu      sync.Mutex
	last    int64 // revision up to which all is known
	changes []history.KeyChange
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
		sleep(ctx, 100*time.Millisecond)
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
		key, err := history.KeyOf(path)
		change, of, failed := key.Change(e.Kv.Value, e.Kv.ModRevision, e.Type == clientv3.EventTypeDelete)
		if err = errors.Join(err, failed); err != nil {
			r.problem = err
		} else if of {
			r.changes = append(r.changes, change)
		}
	}
	r.last = max(last, r.last)
}

// gone reports whether the key of a session has been deleted.
func (r *recorder) gone(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.changes, func(c history.KeyChange) bool { return c.Node == session && c.Deleted })
}

// all waits until everything up to the revision is known, and returns it.
func (r *recorder) all(ctx context.Context, revision int64) ([]history.KeyChange, error) {
	for r.seen() < revision {
		if sleep(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return nil, fmt.Errorf("changes of keys are known up to revision %d, not up to %d: %w", r.seen(), revision, context.Cause(ctx))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes), r.problem
}
