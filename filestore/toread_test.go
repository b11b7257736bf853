package filestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filejournal"
	"taskledger/store"
)

// contentsOf returns the names and contents of the files of a directory.
func contentsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// fileStore makes a directory with a store that has five entries of shard 0, and returns the open store.
func fileStore(t *testing.T, files filejournal.Options) (dir string, s *filestore.Store) {
	t.Helper()
	dir = t.TempDir()
	s, err := filestore.Open(dir, filestore.Config{Shards: 2}, files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	own(t, s, 0).fill(5)
	return dir, s
}

func read(t *testing.T, dir string) *filestore.Store {
	t.Helper()
	s, err := filestore.OpenToRead(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// lastOf returns the number of the last entry of shard 0.
func lastOf(t *testing.T, s *filestore.Store) (last uint64) {
	t.Helper()
	for r, err := range s.Read(t.Context(), 0, 1) {
		if err != nil {
			t.Fatal(err)
		}
		last = r.Number
	}
	return last
}

func TestOpenToRead_ReadsWhatIsThereAndChangesNothing(t *testing.T) {
	for _, durability := range []filejournal.Durability{filejournal.Strict, filejournal.Opportunistic} {
		dir, s := fileStore(t, filejournal.Options{Durability: durability})
		if _, err := filestore.OpenToRead(dir, ""); !errors.Is(err, filejournal.ErrInUse) {
			t.Errorf("%s: in use: %v", durability, err)
		}
		id := s.Cluster()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		before := contentsOf(t, dir)
		for range 2 { // readers share it
			r := read(t, dir)
			if !reflect.DeepEqual(r.Cluster(), id) || r.Durability() != string(durability) {
				t.Errorf("%s: cluster %+v, durability %s", durability, r.Cluster(), r.Durability())
			}
			if last := lastOf(t, r); last != 5 {
				t.Errorf("%s: the last entry is %d", durability, last)
			}
			_, err := r.Join(t.Context(), store.NodeInfo{ID: "node-a", Name: "node"}, time.Minute)
			if !errors.Is(err, filestore.ErrReadOnly) {
				t.Errorf("%s: a node has joined: %v", durability, err)
			}
		}
		_, err := filestore.Open(dir, filestore.Config{}, filejournal.Options{})
		if !errors.Is(err, filejournal.ErrInUse) {
			t.Errorf("%s: while it is read: %v", durability, err)
		}
		if after := contentsOf(t, dir); !reflect.DeepEqual(after, before) {
			t.Errorf("%s: the files have changed", durability)
		}
	}
}

func TestOpenToRead_PassesOverWhatACrashHasLeft(t *testing.T) {
	dir, s := fileStore(t, filejournal.Options{})
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(killed, "log-0000000000000001")
	info, err := os.Stat(log)
	if err == nil {
		err = os.Truncate(log, info.Size()-10)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	before := contentsOf(t, killed)
	if last := lastOf(t, read(t, killed)); last != 4 {
		t.Errorf("the last entry is %d, want 4", last)
	}
	if after := contentsOf(t, killed); !reflect.DeepEqual(after, before) {
		t.Error("the files have changed")
	}
}

func TestOpenToRead_RefusesWhatIsNoStoreAndMakesNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := filestore.OpenToRead(dir, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := filearchive.OpenToRead(dir, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := filestore.OpenToRead(dir, ""); !errors.Is(err, filejournal.ErrFormat) {
		t.Errorf("a directory of something else: %v", err)
	}
	stored, s := fileStore(t, filejournal.Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := filestore.OpenToRead(stored, "another"); !errors.Is(err, filestore.ErrOtherCluster) {
		t.Errorf("another cluster: %v", err)
	}
}
