package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

func TestRead_ReturnsWhatWasWrittenLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session.json")
	if s, found, err := engine.ReadSessionFile(path); found || err != nil {
		t.Errorf("nothing is read as %+v, %t, %v", s, found, err)
	}
	for _, want := range []store.Session{{ID: "one", Lease: 1, Revision: 2}, {ID: "two", Lease: 3, Revision: 4}} {
		if err := engine.WriteSessionFile(path, want); err != nil {
			t.Fatal(err)
		}
		if s, found, err := engine.ReadSessionFile(path); s != want || !found || err != nil {
			t.Errorf("%+v is read as %+v, %t, %v", want, s, found, err)
		}
	}
}

func TestRead_RefusesWhatIsNoSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session.json")
	if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, found, err := engine.ReadSessionFile(path); s != (store.Session{}) || found || err == nil {
		t.Errorf("read as %+v, %t, %v", s, found, err)
	}
}

func TestWrite_LeavesNothingHalfWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "session.json")
	if err := os.MkdirAll(filepath.Join(dir, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := engine.WriteSessionFile(dir, store.Session{ID: "one"}); err == nil {
		t.Error("a directory was replaced")
	}
	if _, err := os.Stat(dir + ".new"); err == nil {
		t.Error("the new file is left behind")
	}
}

// A full or read-only disk costs the wait that the file would save, and nothing else.
func TestSession_FileThatCannotBeWrittenLeavesOneSession(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true})
	j := newJob(task.Policy{})
	path := filepath.Join(t.TempDir(), "missing", "session.json")
	n := c.StartNode("a", func(cfg *cfg) { cfg.SessionFile = path }, j)
	f := j.submit(t, n, "x")
	j.next(t).succeed("1")
	want(t, f, "1")
	got, err := c.Etcd.Get(within(t), nodeKey(""), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || got.Count != 1 {
		t.Errorf("%d sessions, %v; want one", got.Count, err)
	}
}

// What a crash left half-written is written again, and nothing else is left beside it.
func TestSession_FileIsReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true})
	path := filepath.Join(t.TempDir(), "session.json")
	for _, half := range []string{path, path + ".new"} {
		if err := os.WriteFile(half, []byte(`{"ID":"ha`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := c.StartNode("a", func(cfg *cfg) { cfg.SessionFile = path })
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), n.SessionID()) {
		t.Errorf("the file holds %q, %v; want session %s", text, err, n.SessionID())
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("files %v, %v; want the one", files, err)
	}
}
