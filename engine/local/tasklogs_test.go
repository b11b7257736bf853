package local_test

import (
	"fmt"
	"testing"

	"taskledger/behaviors/builtin"
	"taskledger/engine/local"
	"taskledger/task"
	"taskledger/tasklog"
)

// Programs are held that write faster than files are synced: of none of them a line is lost, or kept twice.
func TestNode_HasAllThatProgramsWroteAfterARestart(t *testing.T) {
	const lines = 20_000
	cfg := local.Config{Dir: t.TempDir()}
	b := builtin.Exec(builtin.ExecOptions{Allow: []string{"seq"}})
	cfg.Node.Behaviors = []task.Behavior{b}
	n := start(t, cfg)
	params := fmt.Appendf(nil, `{"program":"seq","args":["%d"]}`, lines)
	f, err := n.Submit(t.Context(), b, params, task.SubmitOptions{ID: "seq"})
	if err == nil {
		_, err = f.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	closed(t, n)
	n = start(t, cfg)
	next, ask := 1, tasklog.Selection{}
	for more := true; more; {
		page, err := n.Log(t.Context(), "seq", ask)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page.Lines {
			if l.Text != fmt.Sprint(next) || l.Missing > 0 {
				t.Fatalf("line %q where %d is due", l.Text, next)
			}
			next++
		}
		ask.Cursor, more = page.Cursor, page.More
	}
	if next != lines+1 {
		t.Errorf("the log ends with line %d, want %d", next-1, lines)
	}
}
