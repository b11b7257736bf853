package engine

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/store"
	"taskledger/task"
)

// ShardInfo is the report of a shard's owner.
type ShardInfo struct {
	Bugs int64 `json:"bugs"` // commands that this owner refused because its decision was a bug; its log shows each

	Shard    int           `json:"shard"`
	Owner    string        `json:"session"`            // id of the owner's session
	Epoch    int64         `json:"epoch"`              // etcd revision of the ownership
	Entries  uint64        `json:"entries"`            // number of the last entry
	Hash     events.Hash   `json:"hash"`               // chain hash of the last entry
	Digest   events.Hash   `json:"digest,omitzero"`    // of the state after that entry; zero unless the ledger asks
	Time     events.Millis `json:"time,omitzero"`      // of the last entry
	Tasks    int           `json:"tasks"`              // in memory
	Live     int           `json:"live"`               // those that have not finished
	Ready    int           `json:"ready"`              // those that wait for a slot
	Refused  int64         `json:"refused"`            // outcomes that this owner refused: late, or of another attempt
	Snapshot uint64        `json:"snapshot"`           // entry of the newest snapshot; 0 = none
	First    uint64        `json:"first"`              // first entry in the store; 0 = not known, or nothing trimmed
	Archived uint64        `json:"archived"`           // last entry read back from the archive; 0 = none, or not known
	Drops    bool          `json:"drops,omitempty"`    // entries that snapshots cover are removed, and archived nowhere
	Degraded string        `json:"degraded,omitempty"` // what no longer works, and the remedy; "" = all works
	Problem  string        `json:"problem,omitempty"`  // why it is not served: no answer, or a quarantine; "" = it is
	NodeName string        `json:"node,omitempty"`     // name of the owner, for people; Operations.Shards leaves it empty

	Losses     int64  `json:"losses,omitempty"`     // how often it has lost entries, or given some up: verify tells which
	Durability string `json:"durability,omitempty"` // of the store, where that tells one: see store.Durable

	shardNeeds

	Began   uint64          `json:"-"` // number of the first entry of this owner
	Figures []meter.Figures `json:"-"` // what its entries hold, from that one on
}

// shardNeeds tells what of a shard somebody should look at, as far as its owner knows.
type shardNeeds struct {
	Refuses      string        `json:"refuses,omitempty"`      // why new tasks are refused; "" = they are not
	Behind       uint64        `json:"behind,omitempty"`       // entries that the archive was to hold a minute ago and does not
	Overdue      int64         `json:"overdue,omitempty"`      // attempts that run on 20 s after their time-out
	OverdueSince events.Millis `json:"overdue_since,omitzero"` // when that of the first of them was over
	Waiting      int64         `json:"waiting,omitempty"`      // tasks that may start and have not for more than a minute
	WaitingMore  bool          `json:"waiting_more,omitempty"` // there may be others: 2,000 tasks are looked at
	WaitingSince events.Millis `json:"waiting_since,omitzero"` // when the first of them could start
}

// infoOf returns the report of a shard's owner, with the number of the shard.
func infoOf(shard int, s *command.ShardReport) ShardInfo {
	info := ShardInfo{
		Bugs:     s.Bugs,
		Shard:    shard,
		Owner:    s.Owner,
		Epoch:    s.Epoch,
		Entries:  s.Entries,
		Time:     events.Millis(s.Time),
		Tasks:    int(s.Tasks),
		Live:     int(s.Live),
		Ready:    int(s.Ready),
		Refused:  s.Refused,
		Snapshot: s.Snapshot,
		First:    s.First,
		Archived: s.Archived,
		Drops:    s.Drops,
		Degraded: s.Degraded,
		Problem:  s.Problem,
		Began:    s.Began,
		Losses:   s.Needs.Losses,
		shardNeeds: shardNeeds{
			Refuses:      s.Needs.Refuses,
			Behind:       s.Needs.Behind,
			Overdue:      s.Needs.Overdue,
			OverdueSince: events.Millis(s.Needs.OverdueSince),
			Waiting:      s.Waits.Tasks,
			WaitingMore:  s.Waits.More,
			WaitingSince: events.Millis(s.Waits.Since),
		},
	}
	info.Figures, _ = meter.Unpack(s.Behaviors, s.Figures) // the report was checked
	copy(info.Hash[:], s.Hash)
	copy(info.Digest[:], s.Digest)
	return info
}

// shardInfos asks the owners of all shards.
func (c *Client) shardInfos(ctx context.Context) ([]ShardInfo, error) {
	all := make([]ShardInfo, c.cfg.Shards)
	var g errgroup.Group
	for shard := range all {
		g.Go(func() error {
			all[shard] = c.shard(ctx, shard, &command.Info{})
			return nil
		})
	}
	err := g.Wait()
	if d, tells := c.cfg.Store.(store.Durable); tells {
		for i := range all {
			all[i].Durability = d.Durability()
		}
	}
	return all, err
}

func (c *Client) shard(ctx context.Context, shard int, ask *command.Info) (s ShardInfo) {
	a, err := c.read(ctx, shard, ask)
	var report command.ShardReport
	if err == nil {
		report, err = command.ReadLenient[command.ShardReport](a.Data)
	}
	switch s = infoOf(shard, &report); {
	case errors.Is(err, task.ErrNoNode):
		s.Problem = task.ErrNoNode.Error()
	case err != nil && ctx.Err() != nil:
		s.Problem = "nobody answers"
	case err != nil:
		s.Problem = err.Error()
	}
	return s
}
