package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"taskledger/engine"
	"taskledger/store"
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
