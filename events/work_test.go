package events_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taskledger/events"
)

func TestWorkerID_StaysInTheShardOfItsParentAndTellsItsNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent, number := drawTaskID(t), rapid.Uint32Range(1, 1<<32-1).Draw(t, "number")
		id := events.WorkerID(parent, number)
		if id.Affinity() != parent.Affinity() {
			t.Errorf("worker %s of %s has another affinity", id, parent)
		}
		if err := id.Validate(); err != nil {
			t.Error(err)
		}
		if got := events.WorkerNumber(parent, id); got != number {
			t.Errorf("worker %s of %s has number %d, want %d", id, parent, got, number)
		}
	})
}

func TestWorkerNumber_IsNoneOfAnotherTask(t *testing.T) {
	for _, id := range []events.TaskID{"a/p.w1", "a/p.w0", "a/p.w02", "a/p.w", "a/p.w4294967296", "a/p/w2", "a/q.w2", "a/p.w2.w3", "a"} {
		if got := events.WorkerNumber("a/p", id); got != 0 {
			t.Errorf("%s is worker %d of a/p", id, got)
		}
	}
	if got := events.WorkerNumber("p", "p.w2"); got != 0 {
		t.Errorf("p.w2 is worker %d of p, whose shard is another", got)
	}
}

func TestWorkerID_OfTheLongestParentIsATaskID(t *testing.T) {
	for _, parent := range []string{strings.Repeat("p", events.MaxWorkParentBytes), "a/" + strings.Repeat("p", events.MaxWorkParentBytes-2)} {
		if err := events.WorkerID(events.TaskID(parent), 1<<32-1).Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestHoldID_StaysInTheShardOfItsParentAndTellsItsNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent, number := drawTaskID(t), rapid.Uint32Range(1, 1<<32-1).Draw(t, "number")
		id := events.HoldID(parent, number)
		if id.Affinity() != parent.Affinity() {
			t.Errorf("hold %s of %s has another affinity", id, parent)
		}
		if err := id.Validate(); err != nil {
			t.Error(err)
		}
		if got := events.HoldNumber(parent, id); got != number {
			t.Errorf("hold %s of %s has number %d, want %d", id, parent, got, number)
		}
		if got := events.WorkerNumber(parent, id); got != 0 {
			t.Errorf("hold %s is worker %d of %s", id, got, parent)
		}
	})
}

func TestHoldNumber_IsNoneOfAnotherTask(t *testing.T) {
	for _, id := range []events.TaskID{"a/p", "a/p.h", "a/p.h0", "a/p.h01", "a/p.h4294967296", "a/p/h1", "a/q.h1", "a/p.h1.h2", "a/p.w2", "a"} {
		if got := events.HoldNumber("a/p", id); got != 0 {
			t.Errorf("%s is hold %d of a/p", id, got)
		}
	}
}

func TestHoldID_OfTheLongestParentIsATaskID(t *testing.T) {
	for _, parent := range []string{strings.Repeat("p", events.MaxWorkParentBytes), "a/" + strings.Repeat("p", events.MaxWorkParentBytes-2)} {
		if err := events.HoldID(events.TaskID(parent), 1<<32-1).Validate(); err != nil {
			t.Error(err)
		}
	}
}
