package local_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"taskledger/engine/local"
	"taskledger/events"
	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/filelogs"
	port "taskledger/store"
	"taskledger/store/archivetest"
)

// A process was killed in a write, and logs of another cluster are there: the journal stays as it was left.
func TestFiles_ChangesNothingOfAJournalBesideWhichAnotherClusterIs(t *testing.T) {
	running, killed := t.TempDir(), t.TempDir()
	s, err := filestore.Open(running, filestore.Config{}, filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(killed, "log-0000000000000001")
	if err := errors.Join(os.CopyFS(killed, os.DirFS(running)), s.Close()); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadFile(log)
	if err == nil {
		left = append(left, make([]byte, 50)...) // of a record that has no bytes yet
		err = os.WriteFile(log, left, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := filelogs.Open(filepath.Join(killed, "logs"), filelogs.Config{Cluster: "another"})
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := local.Files(t.Context(), killed); !errors.Is(err, filelogs.ErrOtherCluster) {
		t.Errorf("error is %v", err)
	}
	if now, err := os.ReadFile(log); err != nil || !bytes.Equal(now, left) {
		t.Errorf("the journal has %d bytes, %v, and had %d", len(now), err, len(left))
	}
}

// A process was killed while it archived, and what it has logged is damaged: the archive stays as it was left, too.
func TestFiles_ChangesNothingBesideAJournalWhereTheLogsAreDamaged(t *testing.T) {
	dir := t.TempDir()
	closed(t, start(t, local.Config{Dir: dir}))
	id := ""
	s, err := filestore.OpenToRead(dir, "")
	if err == nil {
		id = s.Cluster().ID
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	archive, logs := filepath.Join(dir, "archive"), filepath.Join(dir, "logs", "logs-0000000000000001")
	a, err := filearchive.Open(archive, id)
	if err == nil {
		_, err = a.Archive(t.Context(), 3, port.ArchiveHead{}, archivetest.Entries(t, 3, 1, 2))
		err = errors.Join(err, a.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]int64{"lock": 0, "archive-3": 1000, "archive-3.new": 0}
	err = errors.Join(os.Truncate(filepath.Join(archive, "archive-3"), left["archive-3"]), os.Truncate(logs, 0),
		os.WriteFile(filepath.Join(archive, "archive-3.new"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := local.Files(t.Context(), dir); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("error is %v", err)
	}
	there, err := os.ReadDir(archive)
	if err != nil || len(there) != len(left) {
		t.Errorf("there are %v, %v", there, err)
	}
	for _, e := range there {
		if info, err := e.Info(); err != nil || info.Size() != left[e.Name()] {
			t.Errorf("%s has %d bytes, %v, and had %d", e.Name(), info.Size(), err, left[e.Name()])
		}
	}
}

// The disk of a first start is full when the logs are begun, and the next one has room.
func TestFiles_StartsWhereAFirstStartHasMadeTheStoreAlone(t *testing.T) {
	dir := t.TempDir()
	failure := errors.New("no space left on device")
	cfg := filestore.Config{Beside: func(port.Cluster) (func() error, error) {
		return func() error { return failure }, nil
	}}
	if _, err := filestore.Open(dir, cfg, filejournal.Options{}); !errors.Is(err, failure) {
		t.Fatalf("error is %v", err)
	}
	for range 2 {
		closed(t, start(t, local.Config{Dir: dir}))
	}
}
