package works

import (
	"slices"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/works"
)

// Reasons that owners give to the tasks of holds.
const (
	holdGoneReason = "its changes are processed"
	orphanedReason = "its stream is deleted"
)

// deleteSpent deletes tasks whose hold is gone, by so many events at most, and returns how many it has recorded, and
// when it is to be called again, 0 standing for not yet. A task that runs is left to its attempt, unless its stream is
// gone.
func deleteSpent(d *command.Decider, all *works.Works, most int) (recorded int, again events.Millis) {
	if all.SpentLen() == 0 {
		return 0, 0
	}
	if !d.MayRecord(events.KindDeleted) {
		return 0, d.Now + tryAgain
	}
	before := len(d.Entry.Entry.Events)
	orphans := map[events.TaskID]bool{}
	var ids []events.TaskID
	for id, orphan := range all.Spent {
		ids = append(ids, id)
		orphans[id] = orphan
	}
	slices.Sort(ids)
	for _, id := range ids {
		if recorded = len(d.Entry.Entry.Events) - before; recorded >= most || d.EntryFull() || d.Err != nil {
			return recorded, d.Now + 1
		}
		deleteTask(d, d.State.Task(id), orphans[id])
	}
	return len(d.Entry.Entry.Events) - before, 0
}

// deleteTask deletes the task of a hold that is gone, if it can be.
func deleteTask(d *command.Decider, t *projection.Task, orphan bool) {
	if t == nil {
		return
	}
	reason := holdGoneReason
	if orphan {
		reason = orphanedReason
	}
	switch t.Phase() {
	case projection.OnNode:
		if orphan && !t.Cancelled {
			d.Cancel(t, reason)
		}
		return
	case projection.Waiting:
		d.Cancel(t, reason)
		t = d.State.Task(t.ID)
	}
	if t != nil && d.Err == nil {
		d.Emit(t, &events.Deleted{})
	}
}
