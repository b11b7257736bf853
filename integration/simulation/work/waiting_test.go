package work_test

import (
	"strings"
	"testing"

	"taskledger/integration/simulation/work"
	"taskledger/task"
)

// Tasks that have still something to do are named: the settlement that waits for them in vain is damage.
func TestWaiting_NamesTasksThatGoOn(t *testing.T) {
	tasks := []task.Task{{ID: "ended", Status: task.Success}, {ID: "waits", Status: task.Created},
		{ID: "suspended", Status: task.Created, Suspended: true}}
	if got := strings.Join(work.Waiting(tasks), "; "); !strings.HasPrefix(got, "waits (") || strings.Contains(got, ";") {
		t.Errorf("still waiting: %s", got)
	}
}
