package main

import (
	"os"
	"strings"
	"testing"
)

func TestNewStore_RefusesWhatIsNoURLOfAServer(t *testing.T) {
	for _, bad := range []string{"/store/x", "ftp://x", "http://", "localhost:80", "http://a b"} {
		if _, err := newStore(bad, ""); err == nil || !strings.Contains(err.Error(), "-url") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := newStore("http://localhost:80/store/x/", ""); err != nil {
		t.Error(err)
	}
}

func TestStartNode_ThatCannotBeBuiltSaysWhyAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Chdir(t.TempDir()) // outside the module
	if _, err := startNode(t.Context()); err == nil || !strings.Contains(err.Error(), "build the node") {
		t.Errorf("%v, want that it cannot be built", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d entries are left, %v", len(left), err)
	}
}
