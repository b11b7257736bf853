package engine

import (
	"fmt"

	"taskledger/events"
	"taskledger/internal/wire"
)

// ShardInfo is what a shard tells of itself.
type ShardInfo struct {
	Shard    int           `json:"shard"`
	Owner    string        `json:"owner"` // session id
	Epoch    int64         `json:"epoch"` // etcd revision of the ownership
	Entries  uint64        `json:"entries"`
	Hash     events.Hash   `json:"hash"`            // chain hash of the last entry
	Digest   events.Hash   `json:"digest,omitzero"` // of the state after it; for Verify only
	Time     events.Millis `json:"time"`
	Tasks    int           `json:"tasks"`
	Live     int           `json:"live"` // not finished
	Ready    int           `json:"ready"`
	Refused  int64         `json:"refused"`            // late or foreign outcomes that this owner refused
	Snapshot uint64        `json:"snapshot"`           // entry of the newest snapshot; 0 = none
	First    uint64        `json:"first"`              // entry that the journal in the store begins with; 0 = not known at the moment, or nothing was trimmed
	Archived uint64        `json:"archived"`           // last entry that was read back from the archive; 0 = none, as far as known
	Degraded string        `json:"degraded,omitempty"` // what works no more, and the remedy
	Problem  string        `json:"problem,omitempty"`  // why it is not served: nobody answers, or it is quarantined
	NodeName string        `json:"node_name,omitempty"`
}

// encode leaves out what the asker knows.
func (s *ShardInfo) encode() []byte {
	var w wire.Writer
	w.Array(15)
	w.Text(s.Owner)
	w.Int(s.Epoch)
	w.Uint(s.Entries)
	w.Bytes(s.Hash[:])
	w.Bytes(s.Digest[:])
	w.Int(int64(s.Time))
	w.Int(int64(s.Tasks))
	w.Int(int64(s.Live))
	w.Int(int64(s.Ready))
	w.Int(s.Refused)
	w.Uint(s.Snapshot)
	w.Uint(s.First)
	w.Uint(s.Archived)
	w.Text(s.Degraded)
	w.Text(s.Problem)
	return w.B
}

func decodeInfo(data []byte) (s ShardInfo, err error) {
	r, err := scanned(data)
	if err != nil {
		return s, err
	}
	r.ArrayOf(15)
	s.Owner, s.Epoch, s.Entries = r.Text(), r.Int(), r.Uint()
	copy(s.Hash[:], r.View())
	copy(s.Digest[:], r.View())
	s.Time, s.Tasks, s.Live, s.Ready, s.Refused = events.Millis(r.Int()), int(r.Int()), int(r.Int()), int(r.Int()), r.Int()
	s.Snapshot, s.First, s.Archived, s.Degraded, s.Problem = r.Uint(), r.Uint(), r.Uint(), r.Text(), r.Text()
	return s, r.Close()
}

// info tells of the committed state, also while an entry is under way.
func (o *owner) info(c *infoCommand) answer {
	s := ShardInfo{Owner: o.ownership.Session.ID, Epoch: o.ownership.Revision, Entries: o.head.Number, Hash: o.state.Hash, Time: o.state.Time,
		Tasks: int(o.stats.tasks.Load()), Live: int(o.stats.live.Load()), Refused: o.stats.refused.Load(),
		First: o.trims.first.Load(), Archived: o.trims.archived.Load(), Degraded: o.degraded()}
	for _, n := range *o.backlog.Load() {
		s.Ready += n
	}
	if c.Digest {
		s.Digest = o.state.Digest(o.turns)
	}
	if kept := o.snapshots.kept().Kept; len(kept) > 0 {
		s.Snapshot = kept[0].Entry
	}
	return answer{data: s.encode()}
}

// degraded says what works no more; "" = everything does.
func (o *owner) degraded() string {
	why := *o.m.brake.Load()
	if why == "" && o.full {
		why = fullStore
	}
	if live, limit := o.state.LiveBytes(), o.m.liveLimit(); why == "" && limit > 0 && live >= limit-limit/8 {
		why = fmt.Sprintf("tasks of the shard take %d bytes, the store has room for %d: what would take more is refused", live, limit)
	}
	if problem := o.trims.problem.Load(); why == "" && problem != nil {
		why = "not trimmed: " + *problem
	}
	if problem := o.snapshots.trouble(); why == "" && problem != "" {
		why = "no snapshot: " + problem
	}
	if late := o.trims.late.Load(); why == "" && late > 0 {
		why = fmt.Sprintf("the archive begins late, with entry %d: what was before has no history until the archive is restored from a backup; taskledger verify checks what there is", late)
	}
	return why
}
