package infiles_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/infiles"
	"taskledger/events"
	"taskledger/filestore/filejournal"
)

// A tool that leaves out empty files restores everything but the locks: what is there must not pass for missing.
func TestOpenToRead_ReadsArchiveAndLogsOfADirectoryWithoutTheirLocks(t *testing.T) {
	t.Parallel()
	dir := killed(t)
	archive, logs := filepath.Join(dir, "archive"), filepath.Join(dir, "logs")
	if err := errors.Join(os.Remove(filepath.Join(archive, "lock")), os.Remove(filepath.Join(logs, "lock"))); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	r, err := infiles.OpenToRead(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	for e, err := range r.Ledger().Archived(t.Context(), 3, 1) {
		if err != nil {
			t.Fatal(err)
		}
		last = e.Number
	}
	if last != 2 {
		t.Errorf("the archive is read up to entry %d, want 2", last)
	}
	if err := errors.Join(r.CheckLogs(), r.Close()); err != nil {
		t.Errorf("logs without a lock: %v", err)
	}
	c, err := infiles.OpenToCopy(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if c.Archive == nil {
		t.Error("to be copied there is no archive")
	} else if head, err := c.Archive.Head(t.Context(), 3); err != nil || head.Entry != 2 {
		t.Errorf("to be copied the archive ends with entry %d, %v", head.Entry, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if !maps.Equal(contents(t, dir), before) {
		t.Error("something was changed")
	}
	if err := os.WriteFile(filepath.Join(logs, "logs-0000000000000001"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err = infiles.OpenToRead(dir, ""); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.CheckLogs(), r.Close()); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("damaged logs without a lock are checked with %v", err)
	}
}

// They may be removed to make room on a full disk.
func TestOpen_BeginsLogsAnewThatWereRemoved(t *testing.T) {
	t.Parallel()
	dir := killed(t)
	if err := os.RemoveAll(filepath.Join(dir, "logs")); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir)
	if head, err := f.Archive.Head(t.Context(), 3); err != nil || head.Entry != 2 {
		t.Errorf("the archive ends with entry %d, %v", head.Entry, err)
	}
	lives, _, err := f.Logs.Lives(t.Context(), 3, 0)
	if err != nil || len(lives) > 0 {
		t.Errorf("there are logs of %d lives, %v", len(lives), err)
	}
	closed(t, f)
}

// Without its lock nothing keeps a node away from a store that is read.
func TestOpenToRead_RefusesAStoreWithoutItsLockByNameAndTakesItWithANewOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	closed(t, open(t, dir))
	lock := filepath.Join(dir, "lock")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	_, err := infiles.OpenToRead(dir, "")
	if !errors.Is(err, filejournal.ErrNoLock) || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), lock) {
		t.Errorf("without a lock: %v", err)
	}
	if _, err := os.Stat(lock); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a lock: %v", err)
	}
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := infiles.OpenToRead(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
