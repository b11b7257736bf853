package filearchive_test

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"taskledger/filestore/filearchive"
	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/store"
)

func TestLook_ChangesNothingOfWhatACrashHasLeftAndBeginDoes(t *testing.T) {
	all := entries(t)
	for _, n := range changes(t, 1, all) {
		h, d, err := begin(t, 1, all, n)
		if !errors.Is(err, faultdisk.ErrKilled) {
			t.Fatalf("change %d: %v", n, err)
		}
		d = d.Restart()
		contents, before := d.Contents(), d.Changes()
		a, err := filearchive.LookLayer(d, "cluster")
		if err != nil {
			t.Fatalf("killed at change %d: %v", n, err)
		}
		after := h.heads[0]
		_, err = a.Archive(t.Context(), 0, after, h.all[0][after.Entry:after.Entry+1])
		if !errors.Is(err, disk.ErrReadOnly) {
			t.Errorf("archived before it has begun: %v", err)
		}
		if d.Changes() != before || !maps.EqualFunc(contents, d.Contents(), slices.Equal) {
			t.Fatalf("killed at change %d: looking has changed something", n)
		}
		if err := errors.Join(a.Begin(), h.check(a)); err != nil {
			t.Fatalf("killed at change %d: %v", n, err)
		}
		if err := a.Begin(); !errors.Is(err, disk.ErrReadOnly) {
			t.Errorf("begun twice: %v", err)
		}
		closed(t, a)
	}
}

func TestLook_MakesNoDirectoryAndNoLock(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "archive")
	look := func() *filearchive.Archive {
		a, err := filearchive.Look(dir, "cluster")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	closed(t, look())
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a directory: %v", err)
	}
	// Somebody else begins between the look and the beginning.
	late, all := look(), entries(t)[0]
	a := open(t, dir)
	head, err := a.Archive(t.Context(), 0, store.ArchiveHead{}, all[:2])
	if err != nil {
		t.Fatal(err)
	}
	if err := late.Begin(); !errors.Is(err, filearchive.ErrInUse) {
		t.Errorf("begun while it is in use: %v", err)
	}
	closed(t, a)
	if err := late.Begin(); err != nil {
		t.Fatal(err)
	}
	if got, err := late.Head(t.Context(), 0); err != nil || got != head {
		t.Errorf("the head is %+v, %v, and %+v was answered", got, err, head)
	}
	closed(t, late)
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	closed(t, look())
	if _, err := os.Stat(filepath.Join(dir, "lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a lock: %v", err)
	}
}

// A system takes for written what a sync that failed has not written. It is read by the next process, which tells that
// it is archived; the entries are trimmed then.
func TestArchive_WhatIsFoundAfterASyncThatFailedIsThereAfterALossOfPower(t *testing.T) {
	all := entries(t)
	failed := 0
	for _, n := range changes(t, 1, all) {
		h, d := newHistory(t, 1, all), faultdisk.New()
		d.ForgetAt(n)
		a, err := filearchive.OpenLayer(d, "cluster")
		if err == nil {
			h.archive = a
			err = h.run(crashSteps)
		}
		if err == nil { // no sync comes any more
			continue
		}
		if failed++; !errors.Is(err, syscall.EIO) {
			t.Fatalf("from change %d on: %v", n, err)
		}
		d = d.Restart()
		if a, err = filearchive.OpenLayer(d, "cluster"); err == nil {
			err = h.check(a)
		}
		if err != nil {
			t.Fatalf("from change %d on: %v", n, err)
		}
		for name := range fates(nil) {
			again := *h
			again.heads, again.asked = maps.Clone(h.heads), maps.Clone(h.asked)
			if err := again.goOn(d.Crash(fates(rand.New(rand.NewPCG(1, uint64(n))))[name])); err != nil {
				t.Fatalf("from change %d on, keeping %s: %v", n, name, err)
			}
		}
	}
	if failed < crashSteps {
		t.Errorf("%d syncs failed only", failed)
	}
}
