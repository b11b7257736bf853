package shard

import (
	"time"

	"taskledger/projection"
)

const (
	// snapshotTurn bounds how long an owner works on a snapshot between two entries.
	snapshotTurn = 500 * time.Microsecond
	// snapshotTasks counts the tasks that are encoded between two looks at the clock.
	snapshotTasks = 256
)

// taking is the snapshot that an owner takes, a little between two turns.
type taking struct {
	snapshot *projection.Snapshot // being taken; nil: none
	covered  uint64               // entry of the last one begun
	tail     int64                // bytes of the entries after it
	covers   int64                // bytes of the tail that it is to cover, while it is being taken
}

// takeSnapshot works a little on the shard's snapshot, and begins one when the tail of the journal is long. It reports
// whether to go on at once. The state is that of a committed entry here, between two turns.
func (o *Owner) takeSnapshot() bool {
	began := time.Now()
	more, failed := o.snapshots.wants()
	if failed && o.taking.covers > 0 {
		o.taking.tail, o.taking.covers, o.taking.covered = o.taking.tail+o.taking.covers, 0, 0
		if o.taking.snapshot != nil {
			o.endSnapshot()
		}
	}
	if o.taking.snapshot == nil {
		if o.head.Number == o.taking.covered || !o.snapshots.due(o.taking.tail, o.cfg.Admission.Usage().Quota, began) {
			return false
		}
		o.taking.snapshot, o.taking.covered = o.state.BeginSnapshot(), o.head.Number
		o.taking.covers, o.taking.tail = o.taking.tail, 0
		o.snapshots.begin(o.head.Number)
	}
	for ; more; more, failed = o.snapshots.wants() {
		if failed {
			return true // the next turn ends it
		}
		done := o.taking.snapshot.Step(snapshotTasks)
		o.snapshots.add(o.taking.snapshot.Parts(), done)
		if done {
			o.endSnapshot()
			return false
		}
		if time.Since(began) > snapshotTurn {
			return true
		}
	}
	return false // it rings when it has stored some
}

func (o *Owner) endSnapshot() {
	o.taking.snapshot.End()
	o.taking.snapshot = nil
}
