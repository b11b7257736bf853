package embedded_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/engine/embedded"
	"taskledger/engine/local"
	"taskledger/filestore/filejournal"
)

// contentsOf returns the names below a directory, and what is in the files.
func contentsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			all[path] = ""
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

func TestStart_OnADirectoryOfFilesIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n, err := local.Files(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, inUse := range []bool{true, false} {
		before := contentsOf(t, dir)
		_, err := embedded.Start(t.Context(), dir)
		if !errors.Is(err, embedded.ErrStoreInFiles) || !strings.Contains(err.Error(), dir) {
			t.Errorf("in use %v: %v", inUse, err)
		}
		if after := contentsOf(t, dir); !inUse && !maps.Equal(before, after) {
			t.Error("the directory has changed")
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFiles_OnADirectoryOfEtcdAreRefusedAndChangeNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, embedded.ServersConfig{Dir: dir})
	for _, inUse := range []bool{true, false} {
		before := contentsOf(t, dir)
		_, err := local.Files(t.Context(), dir)
		if !errors.Is(err, filejournal.ErrFormat) || !strings.Contains(err.Error(), dir) {
			t.Errorf("in use %v: %v", inUse, err)
		}
		if after := contentsOf(t, dir); !inUse && !maps.Equal(before, after) {
			t.Error("the directory has changed")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	start(t, embedded.ServersConfig{Dir: dir})
}
