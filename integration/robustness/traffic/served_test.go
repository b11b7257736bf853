package traffic_test

import (
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/projection"
	"taskledger/projection/name"
	"taskledger/projection/taskview"
	"taskledger/task"
)

func TestServed_TellsAllThatIsCompared(t *testing.T) {
	policy := events.Policy{MaxLost: 3}
	seen := projection.Task{
		ID:       "a",
		Kind:     &projection.Kind{Creator: "ada", Policy: policy},
		Priority: 2,
		Status:   task.Running,
		Seq:      5,
		Counts: projection.Counts{
			Attempt:  2,
			Runs:     1,
			Failures: 3,
			Lost:     4,
		},
		Due:         9,
		Flags:       projection.Flags{Suspended: true},
		LastAttempt: projection.LastAttempt{LastNode: name.Of("n-1")},
		Wait:        &projection.Wait{Cause: events.KindLost, Since: 7, SuspendedAt: 8},
	}
	want := history.Served{Task: "a", Status: "RUNNING", Seq: 5, Attempt: 2, Runs: 1, Whole: true, Suspended: true, Due: 9, Failures: 3, Lost: 4,
		Creator: "ada", LastNode: "n-1", WaitCause: "Lost", WaitSince: 7, SuspendedAt: 8,
		Terms: history.TermsOf(&policy, 2), Substatus: "suspended", Since: 8, Looked: 10}
	shown := taskview.Of(&seen, 1, 10)
	if got := traffic.Served(&shown); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// What an owner shows of a running attempt moves on with its node, and is in no journal.
func TestServed_LeavesOutTheLostStamp(t *testing.T) {
	seen := projection.Task{
		ID:          "a",
		Status:      task.Running,
		Kind:        &projection.Kind{},
		LastAttempt: projection.LastAttempt{Node: "n-1", StartedAt: 5, Lease: 30},
	}
	seen.Sight(20)
	shown := taskview.Of(&seen, 1, 25)
	if got := traffic.Served(&shown); got.Due != 0 || shown.LostNotBefore == 0 {
		t.Errorf("due %d as it is told, %d as it is served", got.Due, shown.LostNotBefore)
	}
}
