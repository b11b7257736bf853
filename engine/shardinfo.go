package engine

import (
	"fmt"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/meter"
)

// ShardInfo is what the owner of a shard tells of it.
type ShardInfo struct {
	Bugs int64 `json:"bugs"` // commands that this owner refused because its decision was a bug; its log tells of each

	Shard    int           `json:"shard"`
	Owner    string        `json:"session"`            // id of the owner's session
	Epoch    int64         `json:"epoch"`              // etcd revision of the ownership
	Entries  uint64        `json:"entries"`            // number of the last entry
	Hash     events.Hash   `json:"hash"`               // chain hash of the last entry
	Digest   events.Hash   `json:"digest,omitzero"`    // of the state after that entry; zero unless the ledger asks for it
	Time     events.Millis `json:"time,omitzero"`      // of the last entry
	Tasks    int           `json:"tasks"`              // in memory
	Live     int           `json:"live"`               // those that have not finished
	Ready    int           `json:"ready"`              // those that wait for a slot
	Refused  int64         `json:"refused"`            // outcomes that this owner refused because they were late or of another attempt
	Snapshot uint64        `json:"snapshot"`           // entry of the newest snapshot; 0 = none
	First    uint64        `json:"first"`              // first entry of the journal in the store; 0 = not known at the moment, or nothing was trimmed
	Archived uint64        `json:"archived"`           // last entry that was read back from the archive; 0 = none, or not known yet
	Drops    bool          `json:"drops,omitempty"`    // entries that snapshots cover are removed, and archived nowhere
	Degraded string        `json:"degraded,omitempty"` // what no longer works, and the remedy; "" = all works
	Problem  string        `json:"problem,omitempty"`  // why it is not served: no owner answers, or it is quarantined; "" = it is served
	NodeName string        `json:"node,omitempty"`     // name of the owner, for people; the command line fills it in

	Began   uint64          `json:"-"` // number of the first entry of this owner
	Figures []meter.Figures `json:"-"` // what its entries hold, from that one on
}

// infoOf is what the owner of a shard reports, with what the asker knows.
func infoOf(shard int, s *command.ShardReport) ShardInfo {
	info := ShardInfo{Bugs: s.Bugs, Shard: shard, Owner: s.Owner, Epoch: s.Epoch, Entries: s.Entries, Time: events.Millis(s.Time), Tasks: int(s.Tasks),
		Live: int(s.Live), Ready: int(s.Ready), Refused: s.Refused, Snapshot: s.Snapshot, First: s.First, Archived: s.Archived,
		Drops: s.Drops, Degraded: s.Degraded, Problem: s.Problem, Began: s.Began}
	info.Figures, _ = meter.Unpack(s.Behaviors, s.Figures) // the report was checked
	copy(info.Hash[:], s.Hash)
	copy(info.Digest[:], s.Digest)
	return info
}

// info tells of the committed state, also while an entry is under way.
func (o *owner) info(c *command.Info) command.Answer {
	s := command.ShardReport{Owner: o.ownership.Session.ID, Epoch: o.ownership.Revision, Entries: o.head.Number, Hash: o.state.Hash[:],
		Time: int64(o.state.Time), Tasks: o.stats.tasks.Load(), Live: o.stats.live.Load(), Refused: o.stats.refused.Load(), Bugs: o.stats.bugs.Load(),
		First: o.trims.first.Load(), Archived: o.trims.archived.Load(), Degraded: o.degraded()}
	s.Began, s.Drops = o.began, o.m.cfg.Trimming == TrimAll
	s.Behaviors, s.Figures = o.tally.Figures()
	for _, n := range *o.backlog.Load() {
		s.Ready += int64(n)
	}
	if c.Digest {
		digest := o.state.Digest(o.turns)
		s.Digest = digest[:]
	}
	if kept := o.snapshots.kept().Kept; len(kept) > 0 {
		s.Snapshot = kept[0].Entry
	}
	return command.Answer{Data: message.Encode(&s)}
}

// degraded says what works no more; "" = everything does.
func (o *owner) degraded() string {
	why := *o.m.brake.Load()
	if why == "" && o.full {
		why = command.StoreFull
	}
	if live, limit := o.state.LiveBytes(), o.m.liveLimit(); why == "" && limit > 0 && live >= limit-limit/8 {
		why = fmt.Sprintf("tasks of the shard take %d bytes, the store has room for %d: what would take more is refused", live, limit)
	}
	if problem := o.trims.problem.Load(); why == "" && problem != nil {
		why = "not trimmed: " + *problem
	}
	if problem := o.m.node.archive.Problem(); why == "" && problem != "" {
		why = "the archive does not keep everything: " + problem
	}
	if problem := o.snapshots.trouble(); why == "" && problem != "" {
		why = "no snapshot: " + problem
	}
	if late := o.trims.late.Load(); why == "" && late > 0 {
		why = fmt.Sprintf("the archive begins late, with entry %d: what was before has no history until the archive is restored from a backup; taskledger verify checks what there is", late)
	}
	return why
}
