package fronts_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/integration/fronts"
	"taskledger/internal/testkit"
)

// maxTouched bounds the existing files of the product that the next front touches.
const maxTouched = 20

// A front is new files and a row a table: the toy is laid over the tree, and its tests run there.
func TestToyFront_IsNewFilesAndRows(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	texts, err := testkit.ApplyEdits(fronts.ToyRows...)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(texts); n > maxTouched {
		t.Errorf("the toy touches %d existing files, want %d at most", n, maxTouched)
	}
	toy := filepath.Join("integration", "fronts", "testdata", "toy")
	err = fs.WalkDir(os.DirFS(toy), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is no new file", path)
		}
		text, err := os.ReadFile(filepath.Join(toy, path))
		texts[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	laid, err := testkit.LayOver(t.TempDir(), texts)
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay="+laid, "./engine", "./api/view")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay="+laid,
		"-run=^TestToy_", "-v", "./engine/internal/shard")
	out, err := test.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{
		"CountsTheEndOfEveryAttemptInItsEntry", "CountsNothingWhileANodeCannotReadIt",
		"RingsAtATimeThatWasPreparedBesideTheTurns", "RingsInTheNextEntryWhereOneIsFull",
		"HoldsTheTaskOfTheLastAttemptAgainstRetention",
	} {
		if !strings.Contains(string(out), "--- PASS: TestToy_"+name) {
			t.Errorf("TestToy_%s did not run:\n%s", name, out)
		}
	}
}
