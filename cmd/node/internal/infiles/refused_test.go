package infiles_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"taskledger/cmd/node/internal/infiles"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filelogs"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// journal returns what is in the files of the journal in a directory.
func journal(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(data)
	}
	return all
}

// A process was killed, and somebody has put another archive or other logs there: the journal stays as it was left.
func TestOpen_ChangesNothingOfAJournalBesideWhichAnotherClusterIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put  func(dir string) error
		want error
	}{
		"archive": {
			put: func(dir string) error {
				a, err := filearchive.Open(dir, "another")
				if err == nil {
					_, err = a.Archive(t.Context(), 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 2))
					err = errors.Join(err, a.Close())
				}
				return err
			},
			want: filearchive.ErrOtherCluster,
		},
		"logs": {
			put: func(dir string) error {
				l, err := filelogs.Open(dir, filelogs.Config{Cluster: "another"})
				if err == nil {
					err = l.Close()
				}
				return err
			},
			want: filelogs.ErrOtherCluster,
		},
	} {
		running, killed := t.TempDir(), t.TempDir()
		f := open(t, running)
		if err := os.CopyFS(killed, os.DirFS(running)); err != nil {
			t.Fatal(err)
		}
		closed(t, f)
		beside := filepath.Join(killed, name)
		torn := os.Truncate(filepath.Join(killed, "log-0000000000000001"), 50)
		if err := errors.Join(torn, os.RemoveAll(beside), c.put(beside)); err != nil {
			t.Fatal(err)
		}
		before := journal(t, killed)
		if _, err := infiles.Open(killed, infiles.Config{Logs: &filelogs.Config{}}); !errors.Is(err, c.want) {
			t.Errorf("with %s of another cluster: %v, want %v", name, err, c.want)
		}
		if !maps.Equal(journal(t, killed), before) {
			t.Errorf("with %s of another cluster: something was changed", name)
		}
	}
}
