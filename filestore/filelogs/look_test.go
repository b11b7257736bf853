package filelogs_test

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

	"taskledger/filestore/filelogs"
	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/tasklog"
	"taskledger/tasklog/tasklogtest"
)

func TestLook_ChangesNothingOfWhatACrashHasLeftAndBeginDoes(t *testing.T) {
	for _, n := range changes(t, 3) {
		h, d, err := begin(t, n)
		if !errors.Is(err, faultdisk.ErrKilled) {
			t.Fatalf("change %d: %v", n, err)
		}
		d = d.Restart()
		contents, before := d.Contents(), d.Changes()
		if h.logs, err = filelogs.LookLayer(d, tiny); err != nil {
			t.Fatalf("killed at change %d: %v", n, err)
		}
		_, err = h.logs.Append(t.Context(), one, h.end, tasklogtest.Lines(h.end.Line+1, 1))
		_, failed := h.logs.Read(t.Context(), one, tasklog.Range{})
		if !errors.Is(err, disk.ErrReadOnly) || !errors.Is(failed, disk.ErrReadOnly) {
			t.Errorf("before they have begun they are written with %v, and read with %v", err, failed)
		}
		if d.Changes() != before || !maps.EqualFunc(contents, d.Contents(), slices.Equal) {
			t.Fatalf("killed at change %d: looking has changed something", n)
		}
		if err := errors.Join(h.logs.Begin(), h.check(), h.settle()); err != nil {
			t.Fatalf("killed at change %d: %v", n, err)
		}
		if err := h.logs.Begin(); !errors.Is(err, disk.ErrReadOnly) {
			t.Errorf("begun twice: %v", err)
		}
		closed(t, h.logs)
	}
}

func TestLook_MakesNoDirectoryAndNoLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	look := func() *filelogs.Logs {
		l, err := filelogs.Look(dir, filelogs.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	closed(t, look())
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a directory: %v", err)
	}
	// Somebody else begins between the look and the beginning.
	late := look()
	l := openDir(t, dir, filelogs.Config{})
	add(t, l, one, tasklog.End{}, 3)
	if err := late.Begin(); !errors.Is(err, filelogs.ErrInUse) {
		t.Errorf("begun while they are in use: %v", err)
	}
	closed(t, l)
	if err := late.Begin(); err != nil {
		t.Fatal(err)
	}
	has(t, late, one, 1)
	closed(t, late)
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	closed(t, look())
	if _, err := os.Stat(filepath.Join(dir, "lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a lock: %v", err)
	}
}

// A system takes for written what a sync that failed has not written. It is read by the next process, and what that
// writes comes behind it.
func TestLogs_WhatIsFoundAfterASyncThatFailedIsThereAfterALossOfPower(t *testing.T) {
	failed := 0
	for _, n := range changes(t, 4) {
		h, d := &logged{t: t}, faultdisk.New()
		d.ForgetAt(n)
		err := h.open(d)
		if err == nil {
			err = h.run(crashLives)
		}
		if err == nil { // no sync comes any more
			continue
		}
		if failed++; !errors.Is(err, syscall.EIO) {
			t.Fatalf("from change %d on: %v", n, err)
		}
		d = d.Restart()
		if err = h.open(d); err == nil {
			err = errors.Join(h.check(), h.settle())
		}
		if err != nil {
			t.Fatalf("from change %d on: %v", n, err)
		}
		before := *h
		for name := range fates(nil) {
			*h = before
			if err := h.goOn(d.Crash(fates(rand.New(rand.NewPCG(1, uint64(n))))[name])); err != nil {
				t.Fatalf("from change %d on, keeping %s: %v", n, name, err)
			}
		}
	}
	if failed < crashLives {
		t.Errorf("%d syncs failed only", failed)
	}
}
