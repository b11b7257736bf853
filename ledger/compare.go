package ledger

import (
	"fmt"
	"strings"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/journal"
)

// compare compares the fold as it is now with the checkpoint, the snapshot and the owner's state of the same entry.
func (v *verifier) compare() {
	number := v.state.Number
	v.Entries, v.Hash, v.Tasks, v.Losses = number, v.state.Hash, v.state.Len(), journal.Of(v.state).Losses()
	head, named := v.compareHead(number, v.state.Hash)
	named = named && head.State != (events.Hash{}) && v.Damage == ""
	if named && head.Form != projection.DigestForm() {
		v.form, named = head.Form, false
	}
	served := v.served.Problem == "" && v.served.Entry == number
	snapshot, kept := v.snapshots[number]
	if !served && !kept && !named {
		return
	}
	digest := v.state.Digest(nil)
	if named {
		v.compareState(&head, digest)
	}
	if kept {
		v.Snapshots++
		if snapshot.hash != v.state.Hash || snapshot.digest != digest {
			v.damaged(DamageSnapshot, number, "it is not the fold of the entries up to it")
		}
	}
	if served {
		v.Compared = true
		if v.served.Hash != v.state.Hash || v.served.Digest != digest {
			v.damaged(DamageState, number, "the owner's state differs from the fold of the journal")
		}
	}
}

// compareHead compares an entry with the head of a checkpoint, if there is one.
func (v *verifier) compareHead(number uint64, hash events.Hash) (head CheckpointHead, named bool) {
	if head, named = v.heads[number]; !named {
		return head, false
	}
	delete(v.heads, number)
	v.Heads++
	if head.Hash != hash {
		v.damaged(DamageCheckpoint, number, replaced, hash, head.Hash)
	} else if v.Damage == "" {
		v.ProvedTo = max(v.ProvedTo, number)
	}
	return head, true
}

const replaced = "its hash is %s, the checkpoint has %s: this entry, or one before, was replaced"

// compareState compares the fold with the state in a checkpoint. Entries lead to one state: if they are those of the
// checkpoint, what the fold began with is not.
func (v *verifier) compareState(head *CheckpointHead, digest events.Hash) {
	switch {
	case head.State == digest:
		v.proved = head.Entry
	case v.folds > 1:
		v.damaged(DamageSnapshot,
			v.folds-1, "the state that it holds has become another one by entry %d than the checkpoint has", head.Entry)
	default:
		v.damaged(DamageCheckpoint,
			head.Entry, "the entries lead to another state than the checkpoint has, which the owner served then")
	}
}

// tellUnproved says what the checkpoints do not prove of a shard.
func (v *verifier) tellUnproved(o *VerifyOptions) {
	if len(o.Against) == 0 || v.Damage != "" || v.Entries == 0 {
		return
	}
	var all []string
	if v.ProvedTo == 0 {
		all = append(all, "no checkpoint names an entry that is left")
	}
	if v.Dropped > 0 {
		all = append(all, fmt.Sprintf("%d of the entries that they name were dropped before entry %d", v.Dropped, v.From))
	}
	if v.From > 1 {
		all = append(all, fmt.Sprintf("the entries before %d are not there", v.From))
	}
	if v.Unknown {
		all = append(all, "whether these were dropped by rule, or removed, is not known: no owner of the shard answers")
	}
	switch {
	case v.folds == 1 || v.proved != 0:
	case v.form != "":
		all = append(
			all,
			fmt.Sprintf(
				"the state after entry %d is not compared: the checkpoint tells states in the form %s, this program in %s",
				v.folds-1,
				v.form,
				projection.DigestForm(),
			),
		)
	default:
		all = append(all, fmt.Sprintf("the state after entry %d, with which the fold begins, stands in no checkpoint of that entry or a later one",
			v.folds-1))
	}
	if v.ProvedTo != 0 && v.ProvedTo < v.Entries {
		all = append(all, fmt.Sprintf("the entries after %d came after the checkpoint", v.ProvedTo))
	}
	v.Unproved = strings.Join(all, "; ")
}
