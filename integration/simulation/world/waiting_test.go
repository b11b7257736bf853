package world

import (
	"strings"
	"testing"

	"taskledger/task"
)

// Tasks that have still something to do are named: the settlement that waits for them in vain is damage.
func TestWaiting_NamesTasksThatGoOn(t *testing.T) {
	tasks := []task.Task{{ID: "ended", Status: task.Success}, {ID: "waits", Status: task.Created},
		{ID: "suspended", Status: task.Created, Suspended: true}}
	if got := strings.Join(stillWaiting(tasks, false), "; "); !strings.HasPrefix(got, "waits (") || strings.Contains(got, ";") {
		t.Errorf("still waiting: %s", got)
	}
}

// A repetition, and nothing else, has to wait while the load has filled the store.
func TestWaiting_PassesOverRepetitionsWhileTheStoreIsFilled(t *testing.T) {
	for filled, want := range map[bool]string{
		false: "repeats (SUCCESS, attempt 0); tries again (FAILURE, attempt 0); was asked for (SUCCESS, attempt 0)",
		true:  "tries again (FAILURE, attempt 0); was asked for (SUCCESS, attempt 0)",
	} {
		again := task.Times{ScheduleNotBefore: 1}
		got := strings.Join(stillWaiting([]task.Task{
			{ID: "repeats", Status: task.Success, Times: again, Details: task.Details{RunEnded: true}},
			{ID: "tries again", Status: task.Failure, Times: again},
			{ID: "was asked for", Status: task.Success, Times: again, Details: task.Details{RunEnded: true, WaitsSince: 1}},
		}, filled), "; ")
		if got != want {
			t.Errorf("filled %t: still waiting: %s", filled, got)
		}
	}
}
