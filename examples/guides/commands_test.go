package guides_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
)

// typedBlock returns the lines of a block of commands of a guide, which has a text.
func typedBlock(t *testing.T, document, text string) []string {
	t.Helper()
	guide, err := os.ReadFile("../../docs/" + document)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(guide), "```sh\n")[1:] {
		if block, _, _ := strings.Cut(part, "```"); strings.Contains(block, text) {
			return strings.Split(strings.TrimSpace(block), "\n")
		}
	}
	t.Fatalf("%s has no block with %q", document, text)
	return nil
}

// gated is a reindex whose first row fails, and whose later ones wait for a gate. It tells of the first ones that are
// done.
func gated(gate <-chan struct{}, begun chan<- struct{}) *work.Work[Index, Row] {
	const open = 25 // rows that do not wait
	return work.Define("reindex", nil, work.Partition[Index, Row]{
		ID:    "rows",
		Items: new(service).rows,
		Process: func(ctx context.Context, r Row) error {
			switch {
			case r.ID == 0:
				return errors.New("no such row")
			case r.ID < open:
				return nil
			case r.ID == open:
				select {
				case begun <- struct{}{}:
				default:
				}
			}
			select {
			case <-gate:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: 100, Size: 10},
	})
}

// The commands are typed while the work runs, which then comes to its end.
func TestWorks_CommandsOfTheGuideDoWhatTheySay(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "taskledger")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/node").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	gate, begun := make(chan struct{}), make(chan struct{}, 1)
	reindex := gated(gate, begun)
	node, err := embedded.StartWith(t.Context(), embedded.Config{
		Dir:  filepath.Join(dir, "taskledger-data"),
		Node: engine.NodeConfig{Behaviors: []task.Behavior{reindex}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	if _, err := reindex.Submit(t.Context(), node, Index{"people"}, task.SubmitOptions{ID: "reindex-2026"}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-begun:
	case <-testcluster.Within(t).Done():
		t.Fatal("the work has not begun")
	}
	for _, line := range typedBlock(t, "works.md", "work show") {
		if strings.Contains(line, " wait ") {
			close(gate)
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
}
