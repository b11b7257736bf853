package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A node whose etcd has lost its data begins no other cluster by itself, and one that knows its cluster goes into no
// other.
func TestServe_GoesIntoNoOtherClusterThanBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "taskledger-data")
	id := func() string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(data, "cluster-taskledger.id"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	n := serve(t, dir)
	first := id()
	must(t, dir, "list", "--expect-cluster", first)
	n.stop(t)
	if err := os.RemoveAll(filepath.Join(data, "etcd")); err != nil {
		t.Fatal(err)
	}
	r := run(t, dir, "serve")
	if r.code == 0 || !strings.Contains(r.err, first) || !strings.Contains(r.err, "--new-cluster") {
		t.Errorf("without the data of etcd: %+v", r)
	}
	n = serve(t, dir, "serve", "--new-cluster")
	second := id()
	if second == first {
		t.Errorf("the new cluster has the id of the old one, %s", first)
	}
	r = run(t, dir, "list", "--expect-cluster", first)
	if r.code == 0 || !strings.Contains(r.err, first) || !strings.Contains(r.err, second) {
		t.Errorf("another cluster than expected: %+v", r)
	}
	n.stop(t)
	serve(t, dir).stop(t)
	r = run(t, dir, "serve", "--expect-cluster", first)
	if r.code != 2 || !strings.Contains(r.err, first) || !strings.Contains(r.err, second) {
		t.Errorf("the node is of another cluster than expected: %+v", r)
	}
}
