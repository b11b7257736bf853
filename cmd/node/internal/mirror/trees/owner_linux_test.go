package trees_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/work"
)

const nobody = 65534

// becomeNobody makes the goroutine one of a user who may not do what the modes of files forbid, unless it is one
// already. The thread ends with the goroutine.
func becomeNobody() {
	if os.Geteuid() == 0 {
		runtime.LockOSThread()
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0) // it returns the user before
	}
}

// Directories that their owner must not change, as those of module caches, are changed, and look as before.
func TestMirror_DirectoriesThatMayNotBeChangedAreChanged(t *testing.T) {
	closed := node{dir: true, mode: 0o555}
	p := plant(t, forest{
		"d":       closed,
		"d/e":     closed,
		"d/e/new": file("new"),
		"d/e/f/g": closed,
		"d/less":  file("less"),
	}, forest{
		"d":         closed,
		"d/e":       closed,
		"d/less":    file("more"),
		"d/gone":    file("gone"),
		"d/e/gone":  closed,
		"gone":      closed,
		"gone/file": file("gone"),
	})
	pair := open(t, p)
	if os.Geteuid() == 0 {
		err := filepath.Walk(p.Target, func(at string, _ os.FileInfo, err error) error {
			return errors.Join(err, os.Lchown(at, nobody, nobody))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r := newRecord()
	ended := make(chan error)
	go func() {
		becomeNobody()
		_, err := pair.Work(trees.Limits{Threads: 1}).Attempt(t.Context(), &attempt{record: r}, p, work.Attempt{})
		ended <- err
	}()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got, want := r.sums(), (trees.Sums{Copied: 2, Deleted: 4}); got != want {
		t.Errorf("the run tells %+v, want %+v: %+v", got, want, r.parts)
	}
	wantSame(t, p)
}
