package infiles_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"taskledger/cmd/node/internal/infiles"
	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/filelogs"
	"taskledger/internal/advertised"
	"taskledger/store"
	"taskledger/store/archivetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *infiles.Files {
	t.Helper()
	f, err := infiles.Open(dir, infiles.Config{Logs: &filelogs.Config{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func closed(t *testing.T, f *infiles.Files) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFiles_AreAdvertisedWhileTheyAreOpen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if holds, err := infiles.Holds(dir); holds || err != nil {
		t.Error("there is a store before it was created")
	}
	f := open(t, dir)
	if holds, err := infiles.Holds(dir); !holds || err != nil {
		t.Error("there is no store")
	}
	if info, err := os.Stat(filepath.Dir(f.SocketPath("api"))); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("around the socket: %v, %v", info.Mode(), err)
	}
	api := &advertised.API{Addresses: []string{"unix:" + f.SocketPath("api")}, Token: "secret"}
	if err := f.Advertise(api); err != nil {
		t.Fatal(err)
	}
	at, err := advertised.Read(dir)
	known := at.Store == advertised.InFiles && at.Data == f.Store.Cluster().ID && at.Socket() == f.SocketPath("api")
	if err != nil || !known || len(at.Etcd) > 0 {
		t.Errorf("advertised %+v, %v", at, err)
	}
	closed(t, f)
	if _, err := advertised.Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}

// What a process advertised that was killed must lead nobody to whoever listens there by now.
func TestOpen_WithdrawsWhatAKilledProcessAdvertised(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := advertised.Write(dir, advertised.Servers{Data: "killed"}); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := advertised.Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("advertised still: %v", err)
	}
}

func TestOpen_RefusesBadDirectoriesByName(t *testing.T) {
	t.Parallel()
	used := t.TempDir()
	first := open(t, used)
	mixed, everybodys, other, empty := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	closed(t, open(t, mixed))
	closed(t, open(t, other))
	if err := os.RemoveAll(filepath.Join(mixed, "archive")); err != nil {
		t.Fatal(err)
	}
	a, err := filearchive.Open(filepath.Join(mixed, "archive"), "another")
	if err == nil {
		_, err = a.Archive(t.Context(), 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 2))
		err = errors.Join(err, a.Close(), os.Chmod(everybodys, 0o777))
	}
	if err != nil {
		t.Fatal(err)
	}
	logs := t.TempDir()
	closed(t, open(t, logs))
	if err := os.RemoveAll(filepath.Join(logs, "logs")); err != nil {
		t.Fatal(err)
	}
	l, err := filelogs.Open(filepath.Join(logs, "logs"), filelogs.Config{Cluster: "another"})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := infiles.OpenToRead(logs, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.CheckLogs(), r.Close()); !errors.Is(err, filelogs.ErrOtherCluster) {
		t.Errorf("logs of another cluster are checked with %v", err)
	}
	expected := infiles.Config{Store: filestore.Config{ID: "x"}}
	lossy := infiles.Config{Files: filejournal.Options{Durability: filejournal.Opportunistic}}
	for name, c := range map[string]struct {
		dir  string
		cfg  infiles.Config
		want error
	}{
		"in use":                    {used, infiles.Config{}, filejournal.ErrInUse},
		"of another cluster":        {other, expected, filestore.ErrOtherCluster},
		"of another durability":     {other, lossy, filejournal.ErrDurability},
		"of other shards":           {other, infiles.Config{Store: filestore.Config{Shards: 4}}, filestore.ErrShards},
		"with logs of another one":  {logs, infiles.Config{Logs: &filelogs.Config{}}, filelogs.ErrOtherCluster},
		"expected and not there":    {empty, expected, filestore.ErrOtherCluster},
		"open to everybody":         {everybodys, infiles.Config{}, nil},
		"with an archive of others": {mixed, infiles.Config{}, filearchive.ErrOtherCluster},
	} {
		f, err := infiles.Open(c.dir, c.cfg)
		if err == nil {
			t.Errorf("%s: it was opened, %v", name, f.Close())
			continue
		}
		if !strings.Contains(err.Error(), c.dir) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	closed(t, first)
	open(t, used)
}

func TestOpenToRead_ReadsBesideAnotherReaderAndNotBesideANode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := open(t, dir)
	_, err := infiles.OpenToRead(dir, "")
	if !errors.Is(err, filejournal.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("while a node runs: %v", err)
	}
	closed(t, f)
	for range 2 {
		r, err := infiles.OpenToRead(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		shards, err := r.Shards(t.Context())
		if err != nil || len(shards) != 16 || shards[0].Durability != string(filejournal.Strict) {
			t.Errorf("%d shards, %v", len(shards), err)
		}
	}
}
