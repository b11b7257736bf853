package projection_test

import (
	"testing"

	"taskledger/events"
	"taskledger/projection"
)

// A hold goes when its task is deleted, which is no event of the stream's task: its events alone tell that a key has a
// hold again.
func TestLife_OfAStreamHasAHoldAgainWhereADeletedOneIsNotSeen(t *testing.T) {
	policy, err := events.Policy{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	held := func(number uint32) events.Body {
		return &events.ChangeHeld{
			Attempt:   events.RefOf(2, 0),
			Hold:      number,
			Partition: 1,
			Key:       "k",
			Code:      "later",
		}
	}
	life := projection.NewLife()
	var prev events.Ref
	for i, body := range []events.Body{
		&events.Created{Behavior: "b", Policy: policy, NotBefore: 1},
		&events.Started{Node: "n", Attempt: 1},
		&events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{
			{ID: "all", Buckets: 1, Workers: 1, Threads: 1, Form: events.FormPrecise},
		}},
		&events.PartitionStarted{Partition: 1},
		&events.BucketsMoved{Worker: 1, Attempt: events.RefOf(2, 0), Started: 1},
		held(1),
		held(2),
		held(2),
	} {
		ev := events.Event{
			Task: "a",
			Seq:  uint64(i) + 1,
			Prev: prev,
			At:   1,
			Body: body,
		}
		ev.Position.Ref = events.RefOf(uint64(i)+1, 0)
		prev = ev.Position.Ref
		if err := life.Add(&ev); err != nil {
			t.Fatal(err)
		}
	}
}
