package work_test

import (
	"strings"
	"testing"

	"taskledger/integration/simulation/work"
	"taskledger/projection"
)

// Tasks that have still something to do are named: the settlement that waits for them in vain is damage.
func TestWaiting_NamesTasksThatGoOn(t *testing.T) {
	tasks := []projection.Task{{ID: "ended", Status: projection.Success}, {ID: "waits", Status: projection.Created},
		{ID: "suspended", Status: projection.Created, Flags: projection.Flags{Suspended: true}}}
	if got := strings.Join(work.Waiting(tasks), "; "); !strings.HasPrefix(got, "waits (") || strings.Contains(got, ";") {
		t.Errorf("still waiting: %s", got)
	}
}
