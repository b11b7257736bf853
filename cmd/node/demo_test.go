package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// row returns what the demo's table says beside a word.
func row(t *testing.T, report, name string) string {
	t.Helper()
	for line := range strings.Lines(report) {
		if rest, ok := strings.CutPrefix(line, name+"  "); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("no row %q in:\n%s", name, report)
	return ""
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDemo_OfNoFilesSucceeds(t *testing.T) {
	t.Parallel()
	r := run(t, t.TempDir(), "demo")
	if r.code != 0 || row(t, r.out, "tasks") != "0" {
		t.Errorf("code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestDemo_AKilledNodeCostsNoChecksum(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const files = 600 // enough for the doomed node to get some, however late it comes to offer its slots
	for i := range files {
		write(t, filepath.Join(dir, fmt.Sprint("sub", i%3), fmt.Sprint("file", i)), strings.Repeat("x", i))
	}
	write(t, filepath.Join(dir, ".git", "HEAD"), "not counted")
	write(t, filepath.Join(dir, "data", "lock"), "not counted")
	write(t, filepath.Join(dir, "data", "etcd", "member", "snap"), "not counted")
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	r := run(t, dir, "demo", ".")
	if r.code != 0 || row(t, r.out, "tasks") != fmt.Sprint(files) {
		t.Fatalf("code %d: %s%s", r.code, r.out, r.err)
	}
	lost, again := row(t, r.out, "attempts lost"), row(t, r.out, "run again")
	if lost == "0" || lost != again {
		t.Errorf("%s attempts were lost and %s run again", lost, again)
	}
	if got := row(t, r.out, "checksums"); !strings.HasPrefix(got, fmt.Sprint(files, " equal")) {
		t.Errorf("checksums: %s", got)
	}
	if got := row(t, r.out, "ledger"); !strings.HasSuffix(got, " 0 problems") {
		t.Errorf("ledger: %s", got)
	}
}

// A name that is no UTF-8 cannot be written in JSON: whoever runs this test, no task can read that file.
func TestDemo_AFileThatNoTaskCanReadIsNamedAndFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "fine"), "text")
	write(t, filepath.Join(dir, "bad\xff"), "text")
	r := run(t, dir, "demo")
	if r.code != 1 || !strings.Contains(r.out, "failed: ") || !strings.Contains(r.out, `bad\xff`) ||
		!strings.HasPrefix(row(t, r.out, "checksums"), "1 equal") {
		t.Errorf("code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestDemo_OfNoDirectoryFails(t *testing.T) {
	t.Parallel()
	if r := run(t, t.TempDir(), "demo", "no-such-directory"); r.code != 2 || strings.Count(r.err, "\n") != 1 {
		t.Errorf("code %d: %q", r.code, r.err)
	}
}
