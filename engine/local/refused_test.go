package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"taskledger/engine/local"
	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/filelogs"
)

// A process was killed in a write, and logs of another cluster are there: the journal stays as it was left.
func TestFiles_ChangesNothingOfAJournalBesideWhichAnotherClusterIs(t *testing.T) {
	running, killed := t.TempDir(), t.TempDir()
	s, err := filestore.Open(running, filestore.Config{}, filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(killed, "log-0000000000000001")
	if err := errors.Join(os.CopyFS(killed, os.DirFS(running)), s.Close(), os.Truncate(log, 50)); err != nil {
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
	if info, err := os.Stat(log); err != nil || info.Size() != 50 {
		t.Errorf("the journal has %d bytes, %v, and had 50", info.Size(), err)
	}
}
