package infiles_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/infiles"
	"taskledger/events"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filelogs"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// contents returns what is in all files below a directory, and "" for each directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			all[name] = ""
			return err
		}
		data, err := os.ReadFile(name)
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// killed returns a directory as a killed process leaves it that has archived something: the ends of the journal and of
// the archive are torn, and a file of the archive is not whole.
func killed(t *testing.T) string {
	t.Helper()
	running, dir := t.TempDir(), t.TempDir()
	f := open(t, running)
	head, err := f.Archive.Archive(t.Context(), 3, store.ArchiveHead{}, archivetest.Entries(t, 3, 1, 2))
	if err == nil {
		_, err = f.Archive.Archive(t.Context(), 3, head, archivetest.Entries(t, 3, 3, 4))
	}
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(running))
	}
	if err != nil {
		t.Fatal(err)
	}
	closed(t, f)
	archive := filepath.Join(dir, "archive", "archive-3")
	log := filepath.Join(dir, "log-0000000000000001")
	info, err := os.Stat(archive)
	if err == nil {
		err = errors.Join(os.Truncate(archive, info.Size()-7), os.WriteFile(archive+".new", []byte("half"), 0o600))
	}
	var written []byte
	if err == nil {
		written, err = os.ReadFile(log)
	}
	if err == nil { // a record follows that has no bytes yet
		err = os.WriteFile(log, append(written, make([]byte, 50)...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Each part of the directory is damaged in turn, and the others have what a crash has left to be cut and removed.
func TestOpen_ChangesNothingOfADirectoryOfWhichAnyPartIsDamaged(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"snapshot-notes-0", "archive/archive-3", "logs/logs-0000000000000001"} {
		dir := killed(t)
		name := filepath.Join(dir, part)
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data[5] ^= 1
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		before := contents(t, dir)
		_, err = infiles.Open(dir, infiles.Config{Logs: &filelogs.Config{}})
		if !errors.Is(err, events.ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(part)) {
			t.Errorf("%s is damaged: %v", part, err)
		}
		if !maps.Equal(contents(t, dir), before) {
			t.Errorf("%s is damaged: something was changed", part)
		}
		data[5] ^= 1
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f := open(t, dir)
		if head, err := f.Archive.Head(t.Context(), 3); err != nil || head.Entry != 2 {
			t.Errorf("%s is whole again: the archive ends with entry %d, %v", part, head.Entry, err)
		}
		closed(t, f)
		if _, is := contents(t, dir)[filepath.Join(dir, "archive", "archive-3.new")]; is {
			t.Errorf("%s is whole again: a file that is not whole was not removed", part)
		}
	}
}

// What was never there is not made, either.
func TestOpen_MakesNothingInADirectoryThatItRefuses(t *testing.T) {
	t.Parallel()
	dir := killed(t)
	archive, logs := filepath.Join(dir, "archive"), filepath.Join(dir, "logs")
	err := errors.Join(os.RemoveAll(archive), os.Remove(filepath.Join(logs, "lock")),
		os.WriteFile(filepath.Join(logs, "logs-0000000000000001"), []byte("damaged"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	if _, err := infiles.Open(dir, infiles.Config{Logs: &filelogs.Config{}}); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("error is %v", err)
	}
	if after := contents(t, dir); !maps.Equal(after, before) {
		t.Errorf("there are %v, and there were %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
}

// A process was killed, and somebody has put another archive or other logs there: the directory stays as it was left.
func TestOpen_ChangesNothingOfADirectoryWithAnArchiveOrLogsOfAnotherCluster(t *testing.T) {
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
		dir := killed(t)
		beside := filepath.Join(dir, name)
		if err := errors.Join(os.RemoveAll(beside), c.put(beside)); err != nil {
			t.Fatal(err)
		}
		before := contents(t, dir)
		if _, err := infiles.Open(dir, infiles.Config{Logs: &filelogs.Config{}}); !errors.Is(err, c.want) {
			t.Errorf("with %s of another cluster: %v, want %v", name, err, c.want)
		}
		if !maps.Equal(contents(t, dir), before) {
			t.Errorf("with %s of another cluster: something was changed", name)
		}
	}
}
