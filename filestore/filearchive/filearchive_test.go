package filearchive_test

import (
	"testing"

	"go.uber.org/goleak"

	"taskledger/filestore/filearchive"
	"taskledger/store"
	"taskledger/store/archivetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *filearchive.Archive {
	t.Helper()
	a, err := filearchive.Open(dir, "cluster")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func TestArchive_KeepsTheContract(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) store.Archive { return open(t, t.TempDir()) })
}
