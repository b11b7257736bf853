package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A node fetches what its flags allow, and its log tells which flag it lacks.
func TestServe_RunsCollectionsAsItsFlagsAllow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"in", "out"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "in", "orders.csv"), []byte("a,b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, "--name", "first", "--exec-allow", "echo", "--checksum-root", "in", "--sync-root", "out")
	const of = `{"source":"shop","collection":"orders",`
	must(t, dir, "submit", "collection", of+`"driver":"fetch","path":"orders.csv","to":"shop/orders.csv"}`, "--wait", "--id", "fetched")
	if text, err := os.ReadFile(filepath.Join(dir, "out", "shop", "orders.csv")); err != nil || string(text) != "a,b\n" {
		t.Errorf("fetched %q, %v", text, err)
	}
	must(t, dir, "submit", "collection", of+`"driver":"exec","program":"echo","args":["one"]}`, "--wait", "--id", "run")
	if lines := linesOf(t, dir, "run"); !slices.Equal(lines, []string{"info one"}) {
		t.Errorf("the log has %q", lines)
	}
	r := run(t, dir, "submit", "collection", of+`"driver":"exec","program":"date"}`, "--wait", "--id", "refused")
	lines := linesOf(t, dir, "refused")
	if last := lines[len(lines)-1]; r.code != 1 || !strings.HasPrefix(last, `error node "first" has no program "date": --exec-allow`) {
		t.Errorf("exit code %d, last line %q", r.code, last)
	}
}
