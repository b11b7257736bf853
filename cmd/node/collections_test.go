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

// The file of collections may hold secrets of programs, and says which of them run.
func TestServe_FetchesNeitherFromNorToItsFileOfCollections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "files", "sync.yaml")
	const text = "sources: {}\n"
	write(t, file, text)
	write(t, filepath.Join(dir, "files", "other.yaml"), "sources: {s: {collections: [{name: c}]}}\n")
	serve(t, dir, "--sync", file, "--checksum-root", "files", "--sync-root", "files")
	for of, way := range map[string]string{
		"read":     `"path":"sync.yaml","to":"copy.yaml"`,
		"replaced": `"path":"other.yaml","to":"sync.yaml"`,
	} {
		r := run(t, dir, "submit", "collection", `{"source":"s","collection":"c","driver":"fetch",`+way+`}`, "--wait")
		if r.code != 1 || !strings.Contains(r.err, "sync.yaml belongs to the node") {
			t.Errorf("the file can be %s: exit code %d, %s", of, r.code, r.err)
		}
	}
	if is, err := os.ReadFile(file); err != nil || string(is) != text {
		t.Errorf("the file has become %q, %v", is, err)
	}
}
