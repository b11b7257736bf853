package shard_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/task"
)

// An attempt that will be retried is no outcome; the final one is.
func TestOutcome_OfARetriedFailureIsNotAnnounced(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{MaxAttempts: 2})
	b.assign()
	b.accept(command.LaneWork, byPolicyFailure(b.task()))
	if len(b.node.announced) > 0 {
		t.Fatalf("announced %+v for a failure that is retried", b.node.announced)
	}
	b.time = b.time.Add(1 << 40)
	b.assign()
	b.accept(command.LaneWork, byPolicyFailure(b.task()))
	if all := b.node.announced; len(all) != 1 || all[0].Status != task.Failure || all[0].Attempt != 2 {
		t.Errorf("announced %+v, want the failure of attempt 2", all)
	}
}

// The outcome was told before anybody asked; the question must still find it, in whichever owner.
func TestAwait_ThatComesLateFindsItsOwnRun(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{Existing: events.RunAgain})
	life := b.task().Created
	for range 3 {
		b.assign()
		c := report(b.task(), command.Succeeded)
		c.Result = events.JSON([]byte{byte('1' + b.task().Runs)})
		b.accept(command.LaneWork, c)
		b.submit(events.Policy{Existing: events.RunAgain})
	}
	for name, between := range map[string]func(){"SameOwner": func() {}, "NextOwner": b.takeOver} {
		between()
		a, later := b.own.Await(&command.Await{Task: "x", Life: life, Run: 3})
		if later != nil {
			t.Fatalf("%s: run 3 is the last; it is not in the journal alone", name)
		}
		if a.Data != nil {
			got, err := outcome.Decode(a.Data)
			if err != nil || len(got) != 1 || got[0].Run != 3 || string(got[0].Result[1:]) != "3" {
				t.Errorf("%s: outcome is %+v, %v; want run 3", name, got, err)
			}
		}
	}
}
