package cli

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/task"
)

// failing is a task whose attempts fail at times.
type failing struct{ at []time.Time }

func (f failing) Get(context.Context, events.TaskID) (t task.Task, err error) {
	t.ID = "f"
	for _, at := range f.at {
		if time.Now().After(at) {
			t.Failures++
			t.Error = &events.Error{Code: "exit", Message: "exit status 1\nand more"}
			t.ScheduleNotBefore = events.MillisOf(at.Add(time.Minute))
		}
	}
	return t, nil
}

func TestWait_TellsOnceOfEachAttemptThatItSeesFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		var said bytes.Buffer
		a := &app{Program: Program{Name: "node", Err: &said}}
		stop := a.tellFailures(t.Context(), failing{[]time.Time{now.Add(500 * time.Millisecond), now.Add(time.Minute)}}, "f")
		time.Sleep(10 * time.Minute)
		stop()
		due := func(after time.Duration) string { return output.Time(events.MillisOf(now.Add(after))) + "\n" }
		want := "node: attempt 1 of f has failed: exit status 1 and more; the next one is due at " + due(time.Minute+500*time.Millisecond) +
			"node: attempt 2 of f has failed: exit status 1 and more; the next one is due at " + due(2*time.Minute)
		if said.String() != want {
			t.Errorf("said %s", said.String())
		}
	})
}
