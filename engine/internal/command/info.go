package command

import (
	"fmt"

	"taskledger/events"
	"taskledger/meter"
)

// Info asks for a ShardReport.
type Info struct {
	Digest bool // with the digest of the state, for which every task is read
}

func (*Info) Op() uint64 { return opInfo }

func (*Info) Size() int { return 16 }

func (*Info) Limits() error { return nil }

// ShardReport answers an Info.
type ShardReport struct {
	Owner        string
	Epoch        int64
	Entries      uint64
	Hash, Digest []byte // events.Hash, or nil: not known, or not asked for
	Time         int64  // ms
	Tasks        int64
	Live         int64
	Ready        int64
	Refused      int64
	Snapshot     uint64
	First        uint64
	Archived     uint64
	Drops        bool // what snapshots cover is removed, and archived nowhere
	Degraded     string
	Problem      string // why the shard is not served; "" = it is
	Bugs         int64
	Began        uint64   // the first entry of this owner
	Behaviors    []string // of the figures that the owner counts, as meter.Pack makes them
	Figures      []int64
	Shards       int64 // of the cluster; 0 = an earlier release does not say
	Needs        ShardNeeds
	Waits        ShardWaits
}

// ShardNeeds tells what of a shard asks for an operator. The zero value asks for none.
type ShardNeeds struct {
	Refuses      string // why new tasks are refused; "" = they are not
	Behind       uint64 // entries that the archive was to hold and has not held for a while
	Overdue      int64  // attempts that run on, although their time-out is long over
	OverdueSince int64  // ms: when that of the first of them was over
	Losses       int64  // how often the journal has lost entries, or given some up
}

// ShardWaits tells of the tasks that may start and have not for more than a minute.
type ShardWaits struct {
	Tasks int64
	Since int64 // ms: when the first of them could start
	More  bool  // there may be others: no more tasks were looked at
}

// Optional implements message.Optional.
func (*ShardReport) Optional() int { return 3 }

// Check refuses malformed hashes, a missing hash that others are compared with, counts below zero, and figures that
// no owner reports.
func (s *ShardReport) Check() error {
	for _, hash := range [...][]byte{s.Hash, s.Digest} {
		if hash != nil && len(hash) != len(events.Hash{}) {
			return fmt.Errorf("hash of %d bytes", len(hash))
		}
	}
	if s.Hash == nil && s.Entries > 0 && s.Problem == "" {
		return fmt.Errorf("no hash of entry %d", s.Entries)
	}
	least := min(s.Epoch,
		s.Tasks, s.Live, s.Ready, s.Refused, s.Bugs, s.Shards, s.Needs.Overdue, s.Needs.Losses, s.Waits.Tasks)
	if least < 0 {
		return fmt.Errorf("epoch or count %d", least)
	}
	for _, id := range s.Behaviors {
		if err := events.ValidateBehavior(id); err != nil && id != meter.Other {
			return err
		}
	}
	_, err := meter.Unpack(s.Behaviors, s.Figures)
	return err
}
