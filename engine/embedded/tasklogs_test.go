package embedded_test

import (
	"fmt"
	"log/slog"
	"testing"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/events"
	"taskledger/task"
	"taskledger/tasklog"
)

// Programs that write faster than NATS stores are held: of none of them a line is lost, or kept twice.
func TestLogs_HaveAllThatProgramsWrite(t *testing.T) {
	t.Parallel()
	const programs, lines = 4, 20_000
	log := slog.New(slog.DiscardHandler)
	b := builtin.Exec(builtin.ExecOptions{Allow: []string{"seq"}})
	n, err := embedded.StartWith(t.Context(), embedded.Config{
		Dir:  t.TempDir(),
		Log:  log,
		Node: engine.NodeConfig{Behaviors: []task.Behavior{b}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	cluster, err := n.Connect(t.Context(), "", 0, log)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	var all []*engine.Future
	for i := range programs {
		params := fmt.Appendf(nil, `{"program":"seq","args":["%d"]}`, lines)
		f, err := n.Submit(t.Context(), b, params, task.SubmitOptions{ID: events.TaskID(fmt.Sprint("seq-", i))})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	for _, f := range all {
		if _, err := f.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		x, err := n.Get(t.Context(), f.ID())
		if err != nil {
			t.Fatal(err)
		}
		q := tasklog.Query{
			Shard:    uint16(f.ID().Shard(cluster.Store.Cluster().Shards)),
			Life:     x.Details.Life,
			Attempts: []tasklog.Begun{{Number: 1}},
		}
		next := 1
		for more := true; more; {
			page, err := tasklog.ReadTask(t.Context(), cluster.Logs, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range page.Lines {
				if l.Text != fmt.Sprint(next) || l.Missing > 0 {
					t.Fatalf("%s: line %q where %d is due", f.ID(), l.Text, next)
				}
				next++
			}
			q.After, more = page.Next, page.More
		}
		if next != lines+1 {
			t.Errorf("%s: the log ends with line %d, want %d", f.ID(), next-1, lines)
		}
	}
}
