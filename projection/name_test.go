package projection_test

import (
	"bytes"
	"fmt"
	"testing"

	"taskledger/events"
)

// More nodes have run tasks than a shard remembers the names of: a snapshot still holds each name once, and tells every
// task's last node.
func TestName_OfManyNodesIsInASnapshotOnce(t *testing.T) {
	j := newJournal(t)
	const nodes = 1100
	run := func(id events.TaskID, node int) {
		j.add(id, j.created())
		started := j.started(id)
		started.Node = fmt.Sprintf("node-%04d", node)
		j.add(id, started)
		j.add(id, &events.Succeeded{Run: 1})
	}
	for i := range nodes {
		run(events.TaskID(fmt.Sprint("t", i)), i)
		if i%100 == 0 {
			j.seal(0)
		}
	}
	run("again", 0)
	j.seal(0)
	parts := write(j.state)
	if n := bytes.Count(bytes.Join(parts, nil), []byte("node-0000")); n != 1 {
		t.Errorf("the snapshot holds the name %d times", n)
	}
	wantSame(t, whole(restore(t, parts), j.now), whole(j.state, j.now), "restored")
	for id, want := range map[events.TaskID]string{"t0": "node-0000", "t1099": "node-1099", "again": "node-0000"} {
		if got := restore(t, parts).Task(id).LastNode.String(); got != want {
			t.Errorf("%s ran last on %q, want %q", id, got, want)
		}
	}
}
