package traffic_test

import (
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/projection"
	"taskledger/projection/name"
	"taskledger/task"
)

func TestServed_TellsAllThatIsCompared(t *testing.T) {
	policy := events.Policy{MaxLost: 3}
	task := projection.Task{
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
	if got, err := traffic.Served(&task, events.Millis(10).Time()); got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// What an owner shows of a running attempt moves on with its node, and is in no journal.
func TestServed_LeavesOutTheLostStamp(t *testing.T) {
	task := projection.Task{
		ID:          "a",
		Status:      task.Running,
		Kind:        &projection.Kind{},
		LastAttempt: projection.LastAttempt{Node: "n-1", StartedAt: 5, Lease: 30},
	}
	task.Sight(20)
	if got, err := traffic.Served(&task, events.Millis(25).Time()); got.Due != 0 || task.Due == 0 || err != nil {
		t.Errorf("due %d as it is told, %d as it is served, %v", got.Due, task.Due, err)
	}
}
