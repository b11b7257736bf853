package filestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/filelogs"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/store"
)

// beside is an archive and logs in a directory beside a store.
type beside struct {
	dir     string
	failure error // with which the beginning fails between the two; nil = it does not
	closers []func() error
}

// look implements the Beside of a filestore.Config.
func (b *beside) look(c store.Cluster) (func() error, error) {
	a, err := filearchive.Look(filepath.Join(b.dir, "archive"), c.ID)
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, a.Close)
	l, err := filelogs.Look(filepath.Join(b.dir, "logs"), filelogs.Config{Cluster: c.ID})
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, l.Close)
	return func() error {
		if err := errors.Join(a.Begin(), b.failure); err != nil {
			return err
		}
		return l.Begin()
	}, nil
}

// startWith opens the store on a disk with what is beside it, closes all of it, and returns the id of the cluster.
func startWith(d *faultdisk.Disk, b *beside) (id string, err error) {
	j, err := filejournal.LookLayer(d, filejournal.Options{Boot: "boot"})
	if err != nil {
		return "", err
	}
	s, err := filestore.OpenLooked(j, filestore.Config{Beside: b.look})
	if err == nil {
		id = s.Cluster().ID
	}
	closed := j.Close()
	if err == nil {
		err = closed
	}
	for _, end := range b.closers {
		err = errors.Join(err, end())
	}
	return id, err
}

// copyOf returns a copy of a directory.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// The id of a new store is drawn before its notes are there: nothing beside it may have that id before.
func TestOpen_AFirstStartThatStopsAtAnyChangeLeavesWhatTheNextOneTakes(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	everything := faultdisk.Fate{
		Names:  func(n int) int { return n },
		Length: func(_, written int) int { return written },
		Sector: yes,
	}
	nothing := faultdisk.Fate{
		Names:  func(int) int { return 0 },
		Length: func(synced, _ int) int { return synced },
		Sector: no,
	}
	whole := faultdisk.New()
	if _, err := startWith(whole, &beside{dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= whole.Changes(); n++ {
		for name, fault := range map[string]struct {
			of   func(*faultdisk.Disk)
			want error
		}{
			"killed":       {func(d *faultdisk.Disk) { d.KillAt(n) }, faultdisk.ErrKilled},
			"without room": {func(d *faultdisk.Disk) { d.FailAt(n, syscall.ENOSPC) }, syscall.ENOSPC},
		} {
			dir, d := t.TempDir(), faultdisk.New()
			fault.of(d)
			if _, err := startWith(d, &beside{dir: dir}); err != nil && !errors.Is(err, fault.want) {
				t.Fatalf("%s at change %d: %v", name, n, err)
			}
			for left, next := range map[string]*faultdisk.Disk{
				"everything": d.Crash(everything),
				"nothing":    d.Crash(nothing),
				"the system": d.Restart(),
			} {
				at := copyOf(t, dir)
				id, err := startWith(next, &beside{dir: at})
				if err != nil {
					t.Fatalf("%s at change %d, and %s was left: %v", name, n, left, err)
				}
				again, err := startWith(next, &beside{dir: at})
				if err != nil || again != id {
					t.Fatalf("%s at change %d, and %s was left: then cluster %s, %v, and %s before", name, n, left, again, err, id)
				}
			}
		}
	}
}

func TestOpen_AFirstStartThatFailsBesideTheStoreLeavesWhatTheNextOneTakes(t *testing.T) {
	dir, d, failure := t.TempDir(), faultdisk.New(), errors.New("the disk is gone")
	if _, err := startWith(d, &beside{dir: dir, failure: failure}); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	if _, err := startWith(d, &beside{dir: dir}); err != nil {
		t.Error(err)
	}
}

// A journal was lost, or put somewhere else: what is beside it belongs to no new store.
func TestOpen_OfANewStoreRefusesWhatIsBesideIt(t *testing.T) {
	dir := t.TempDir()
	if _, err := startWith(faultdisk.New(), &beside{dir: dir}); err != nil {
		t.Fatal(err)
	}
	d := faultdisk.New()
	if _, err := startWith(d, &beside{dir: dir}); !errors.Is(err, filelogs.ErrOtherCluster) {
		t.Errorf("error is %v", err)
	}
	if d.Changes() > 0 {
		t.Errorf("%d changes", d.Changes())
	}
}

// What cannot be written is not settled beside it, either.
func TestOpen_BeginsNothingBesideAJournalThatDoesNotBegin(t *testing.T) {
	dir, d := t.TempDir(), faultdisk.New()
	if _, err := startWith(d, &beside{dir: dir}); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "logs", "logs-0000000000000002.new")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.FailAt(1, syscall.ENOSPC)
	if _, err := startWith(d, &beside{dir: dir}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Error(err)
	}
	d.FailAt(0, nil)
	if _, err := startWith(d, &beside{dir: dir}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what a crash has left is there still")
	}
}
