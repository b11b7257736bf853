package trees_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"taskledger/cmd/node/internal/mirror/trees"
)

const nobody = 65534

// asNobody runs a test in a process of a user who may not do what the modes of files forbid, unless the user of this
// one is such a user. It reports whether the test is to go on here.
func asNobody(t *testing.T) bool {
	t.Helper()
	return asNobodyIn(t, func(string) error { return nil })
}

// asNobodyIn is asNobody where the mighty user plants something in the directory in which the test goes on.
func asNobodyIn(t *testing.T, plant func(dir string) error) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	dir, err := os.MkdirTemp("", "nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chown(dir, nobody, nobody), plant(dir)); err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	again.Dir, again.Env = dir, append(os.Environ(), "TMPDIR="+dir)
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	return false
}

// Directories that their owner must not change, as those of module caches, are changed, and look as before.
func TestMirror_DirectoriesThatMayNotBeChangedAreChanged(t *testing.T) {
	if !asNobody(t) {
		return
	}
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
	r := attemptOf(t, p, trees.Limits{Threads: 1})
	if got, want := r.sums(), (trees.Sums{Copied: 2, Deleted: 4}); got != want {
		t.Errorf("the run tells %+v, want %+v: %+v", got, want, r.parts)
	}
	wantSame(t, p)
}

// attemptOf makes a run of two trees, which may hold directories that are hard to remove.
func attemptOf(t *testing.T, p trees.Params, l trees.Limits) *record {
	t.Helper()
	t.Cleanup(func() {
		_ = filepath.WalkDir(filepath.Dir(p.Source), func(at string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				err = os.Chmod(at, 0o700)
			}
			return err
		})
	})
	r := newRecord()
	if _, err := r.attempt(t.Context(), p, l, 0, false); err != nil {
		t.Fatal(err)
	}
	return r
}

// failures returns the errors of the items of a run, by paths.
func (r *record) failures() map[string]string {
	all := map[string]string{}
	for _, p := range r.parts {
		for _, e := range p.errors {
			all[e.Item] = e.Message
		}
	}
	return all
}

func TestMirror_ADirectoryThatCannotBeReadFailsAloneAndNothingInItsPlaceIsDeleted(t *testing.T) {
	if !asNobody(t) {
		return
	}
	for name, mode := range map[string]os.FileMode{
		"not at all":          0o300,
		"its names alone":     0o600,
		"its entries, unseen": 0o100,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plant(t, forest{
				"a":           file("a"),
				"d/closed":    {dir: true, mode: mode},
				"d/closed2/x": file("x"),
				"e/f":         file("f"),
			}, forest{
				"d/closed/kept":      file("kept"),
				"d/closed/more/kept": file("kept"),
				"gone":               file("gone"),
			})
			limit := int64(1)
			r := attemptOf(t, p, trees.Limits{Threads: 1, Workers: 1, MaxDeletes: &limit})
			if got, want := r.sums(), (trees.Sums{Copied: 3, Deleted: 1, Failed: 1}); got != want {
				t.Errorf("the run tells %+v, want %+v", got, want)
			}
			if f := r.failures(); len(f) != 1 || !strings.Contains(f["d/closed"], "cannot be read") {
				t.Errorf("failed: %q", f)
			}
			all := mustLook(t, p.Target)
			for _, at := range []string{"a", "d/closed/kept", "d/closed/more/kept", "d/closed2/x", "e/f"} {
				if all[at] == "" {
					t.Errorf("%s is missing", at)
				}
			}
		})
	}
}

// A directory of the target that cannot be read holds what nobody knows: it fails, and everything else is done.
func TestMirror_ATargetDirectoryThatCannotBeReadFailsAlone(t *testing.T) {
	if !asNobody(t) {
		return
	}
	p := plant(t, forest{"a": file("a"), "e/f": file("f")}, forest{
		"closed": {dir: true, mode: 0o300},
		"gone":   file("gone"),
	})
	limit := int64(1) // what fails takes nothing of it
	r := attemptOf(t, p, trees.Limits{Threads: 1, Workers: 1, MaxDeletes: &limit})
	if got, want := r.sums(), (trees.Sums{Copied: 2, Deleted: 1, Failed: 1}); got != want {
		t.Errorf("the run tells %+v, want %+v", got, want)
	}
	if f := r.failures(); len(f) != 1 || !strings.Contains(f["closed"], "cannot be read") {
		t.Errorf("failed: %q", f)
	}
}

// A directory of the target that can be seen, though not be read, looks equal to that of the source. Only a mighty user
// can make one that belongs to somebody else: for others the test with a link that is in the way has to do.
func TestFollow_WhatVanishedGoesOnceADirectoryOfAnotherOwnerCanBeRead(t *testing.T) {
	t.Parallel()
	plantClosed := func(dir string) error {
		target := filepath.Join(dir, "target")
		closed := filepath.Join(target, "closed")
		return errors.Join(os.Mkdir(target, 0o755), os.Chown(target, nobody, nobody), os.Mkdir(closed, 0o700),
			os.Chtimes(closed, epoch, epoch))
	}
	if !asNobodyIn(t, plantClosed) {
		return
	}
	target, err := filepath.Abs("target")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(target, "closed")); err != nil {
		return
	}
	of := forest{"a": file("one"), "d": {dir: true, mode: 0o700}, "d/gone": file("two"), "d/e/stays": file("three")}
	p := plant(t, of, nil)
	p.Target = target
	do(t, func() error { return of.plant(target) })
	planted := time.Now()
	soon(t, func() string { // what was planted is older than the first change, and no scan looks at what is closed
		if time.Since(planted) < 2*fastLag {
			return "nothing"
		}
		return ""
	})
	f := follows(p, time.Now())
	f.fast.Again = fastLag
	var is clock
	f.fast.Clock = is.tell
	stop := f.start(t)
	defer stop()
	since := time.Now()
	do(t, func() error { return os.WriteFile(filepath.Join(f.Source, "a"), []byte("two"), 0o644) })
	f.settled(t, since)
	at := func(name string) string { return filepath.Join(target, name) }
	since = time.Now()
	do(t,
		func() error { return os.Rename(at("d"), at("away")) },
		func() error { return os.Rename(at("closed"), at("d")) },
		func() error { return os.Remove(filepath.Join(f.Source, "d/gone")) },
		func() error { return os.Chtimes(filepath.Join(f.Source, "d"), epoch, epoch) },
	)
	f.awaitFailure(t)
	letGo := is.hold(t) // no scan sees what is between the two
	defer letGo()
	do(t,
		func() error { return os.Rename(at("d"), at("closed")) },
		func() error { return os.Rename(at("away"), at("d")) },
	)
	letGo()
	soon(t, func() string {
		if _, err := os.Lstat(at("d/gone")); err == nil {
			return "what vanished is still there"
		}
		return ""
	})
	f.settled(t, since)
	if failed := f.tokens.failures(); failed != 1 {
		t.Errorf("%d changes failed, want 1", failed)
	}
}

// No scan tells what is in a directory that could not be read when it vanished from the source.
func TestFollow_ADirectoryThatVanishedAndCouldNotBeReadGoesOnceItCan(t *testing.T) {
	t.Parallel()
	if !asNobody(t) {
		return
	}
	of := forest{"a": file("one"), "b/c/d/file": file("two"), "b/c/other": file("three")}
	f := plantFollowed(t, of, of)
	f.fast.Again = fastLag
	stop := f.start(t)
	defer stop()
	since := time.Now()
	do(t, func() error { return os.WriteFile(filepath.Join(f.Source, "a"), []byte("two"), 0o644) })
	f.settled(t, since)
	closed := filepath.Join(f.Target, "b/c/d")
	since = time.Now()
	do(t,
		func() error { return os.Chmod(closed, 0o300) },
		func() error { return os.RemoveAll(filepath.Join(f.Source, "b/c")) },
	)
	f.awaitFailure(t)
	do(t, func() error { return os.Chmod(closed, 0o700) })
	f.equalSoon(t)
	f.settled(t, since)
}
