package engine

import (
	"testing"

	"taskledger/projection"
)

// The reply to a refusal was lost: its sender asks again, and must not wait until there is space.
func TestFull_RefusesAgainWhatItRefused(t *testing.T) {
	b := newBench(t, -1)
	refused := map[projection.SenderLane]uint64{}
	l := b.next("sender", laneSubmit, submitOf(Policy{}))
	for range 2 {
		b.deliver(l)
		b.own.refuseNew(refused)
		b.m.tasks.Wait()
	}
	if len(l.got) != 2 || l.got[0][0].code != answerOverload || l.got[1][0].code != answerOverload {
		t.Errorf("told %+v, want two refusals", l.got)
	}
}

// What the entry under way decides is answered when it is committed, not before.
func TestFull_LeavesWhatIsDecidedToItsEntry(t *testing.T) {
	b := newBench(t, -1)
	l := b.next("sender", laneSubmit, submitOf(Policy{}))
	b.own.remember(projection.SenderLane{Sender: "sender", Lane: laneSubmit}, l.batch.number, []answer{{}})
	b.deliver(l)
	b.own.refuseNew(map[projection.SenderLane]uint64{})
	b.m.tasks.Wait()
	if len(l.got) != 0 || b.own.inbox.size() != 1 {
		t.Errorf("told %+v, %d batches wait; want none and one", l.got, b.own.inbox.size())
	}
}
