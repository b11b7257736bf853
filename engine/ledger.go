package engine

import (
	"context"
	"maps"
	"slices"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/ledger/repair"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/tasklog"
)

// Ledger returns a reader of the journals of the cluster: histories, projections, verification. It needs a Store:
// without one its methods return store.ErrUnavailable.
func (c *Client) Ledger() *ledger.Ledger {
	if c.cfg.Store == nil {
		return ledger.New(ledger.Config{Cluster: store.Cluster{Shards: c.cfg.Shards}})
	}
	return ledger.New(ledger.Config{
		Cluster:    c.cfg.Store.Cluster(),
		Journal:    c.cfg.Store,
		Snapshots:  c.cfg.Store,
		Archive:    c.cfg.Archive,
		Archived:   c.archives,
		Owners:     owners{c},
		Revision:   c.revision,
		Milestones: &c.milestones,
	})
}

func (c *Client) journals() repair.Journals {
	j := repair.Journals{
		Shards:    c.cfg.Shards,
		Journal:   c.cfg.Store,
		Snapshots: c.cfg.Store,
		Repairer:  c.cfg.Store,
		Losses:    c.cfg.Store,
		Members:   c.cfg.Store,
	}
	if archive, is := c.cfg.Archive.(store.Archiver); is {
		j.Archive = archive
	}
	if logs, is := c.cfg.Logs.(tasklog.Store); is {
		j.ForgetLogs = func(ctx context.Context, shard int) error {
			return logs.Forget(ctx, uint16(shard), tasklog.EveryLife, 0)
		}
	}
	return j
}

func (c *Client) revision(ctx context.Context) (int64, error) {
	members, err := c.cfg.Store.ReadMembers(ctx)
	return members.Revision, err
}

// owners asks the owners of the shards for the ledger.
type owners struct{ c *Client }

// Task implements ledger.Owners.
func (o owners) Task(ctx context.Context, id events.TaskID) (projection.Task, error) {
	return o.c.get(ctx, id, false)
}

// Present implements ledger.Owners.
func (o owners) Present(ctx context.Context) (bool, error) {
	members, err := o.c.cfg.Store.ReadMembers(ctx)
	owns := func(n store.NodeInfo) bool { return n.Owner }
	return slices.ContainsFunc(slices.Collect(maps.Values(members.Nodes)), owns), err
}

// Heads implements ledger.Owners.
func (o owners) Heads(ctx context.Context) ([]ledger.Head, error) {
	served, err := o.c.shardInfos(ctx)
	heads := make([]ledger.Head, len(served))
	for i := range served {
		heads[i] = headOf(&served[i])
	}
	return heads, err
}

// Digest implements ledger.Owners.
func (o owners) Digest(ctx context.Context, shard int) ledger.Head {
	s := o.c.shard(ctx, shard, &command.Info{Digest: true})
	return headOf(&s)
}

func headOf(s *ShardInfo) ledger.Head {
	return ledger.Head{
		Shard:   s.Shard,
		Entry:   s.Entries,
		Hash:    s.Hash,
		Digest:  s.Digest,
		Drops:   s.Drops,
		Problem: s.Problem,
	}
}
