package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// forgetful counts how often an owner is asked for a task that it does not know.
type forgetful struct {
	ledger.Owners
	asked int
}

func (f *forgetful) Task(context.Context, events.TaskID) (t projection.Task, err error) {
	f.asked++
	return t, task.ErrNotFound
}

// The way through a life is found once, however many pages are printed.
func TestHistory_WithALimitIsReadInOnePass(t *testing.T) {
	j := testcluster.StartJournals(t, 1)
	j.Fill(0, testcluster.Life(t, "x", "work", "a-aaaaaaaaaa", 2600))
	for _, states := range []bool{false, true} {
		owners := &forgetful{}
		l := ledger.New(ledger.Config{Cluster: store.Cluster{Shards: 1}, Journal: j.Store, Owners: owners})
		var out, said bytes.Buffer
		a := &app{Program: Program{Name: "taskledger", Out: &out, Err: &said}, output: "json"}
		o := ledger.HistoryOptions{Limit: ledger.MaxHistoryPage, Total: 2300, States: states}
		if err := a.history(t.Context(), l, "x", o); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(out.String(), "\n"); lines != 2300 || !strings.Contains(said.String(), "more follows: --cursor ") {
			t.Errorf("states %t: %d events are printed, and %q", states, lines, said.String())
		}
		if owners.asked != 1 {
			t.Errorf("states %t: the life was looked for %d times", states, owners.asked)
		}
	}
}
