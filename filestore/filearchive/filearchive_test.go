package filearchive_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"taskledger/events"
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

var update = flag.Bool("update", false, "write the golden file where it is missing; an existing one is never changed")

// filled returns an archive of two segments of shard 3, entries 1 to 3 and 4 to 5, and these entries.
func filled(t *testing.T, dir string) (*filearchive.Archive, []store.Record) {
	t.Helper()
	a, all := open(t, dir), archivetest.Entries(t, 3, 1, 5)
	var head store.ArchiveHead
	for _, entries := range [][]store.Record{all[:3], all[3:]} {
		var err error
		if head, err = a.Archive(t.Context(), 3, head, entries); err != nil {
			t.Fatal(err)
		}
	}
	return a, all
}

func closed(t *testing.T, a *filearchive.Archive) {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantArchived(t *testing.T, a *filearchive.Archive, want []store.Record) {
	t.Helper()
	got, err := archivetest.Collect(a.ReadArchive(t.Context(), 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, want)
}

func TestArchive_IsThereWhenItIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	a, all := filled(t, dir)
	head, err := a.Head(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, a)
	a = open(t, dir)
	wantArchived(t, a, all)
	more := archivetest.Entries(t, 3, 6, 1)
	if _, err := a.Archive(t.Context(), 3, head, more); err != nil {
		t.Fatal(err)
	}
	closed(t, a)
	wantArchived(t, open(t, dir), append(all, more...))
}

func TestArchive_WhatACrashHasCutShortIsRemoved(t *testing.T) {
	dir := t.TempDir()
	a, all := filled(t, dir)
	closed(t, a)
	name := filepath.Join(dir, "archive-3")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(whole, []byte("1JLT"))
	for cut := len(whole) - 1; cut >= at; cut-- {
		if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		a := open(t, dir)
		wantArchived(t, a, all[:3])
		closed(t, a)
	}
}

func TestArchive_AFlippedBitIsNamed(t *testing.T) {
	dir := t.TempDir()
	a, _ := filled(t, dir)
	closed(t, a)
	name := filepath.Join(dir, "archive-3")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += 5 {
		whole[at] ^= 1 << (at % 8)
		if err := os.WriteFile(name, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := filearchive.Open(dir, "cluster")
		if !errors.Is(err, events.ErrDamaged) || !strings.Contains(err.Error(), "archive-3") {
			t.Fatalf("bit %d at offset %d: %v", at%8, at, err)
		}
		whole[at] ^= 1 << (at % 8)
	}
}

func TestArchive_OfAnotherClusterOrInUseIsRefused(t *testing.T) {
	dir := t.TempDir()
	a, _ := filled(t, dir)
	if _, err := filearchive.Open(dir, "cluster"); !errors.Is(err, filearchive.ErrInUse) {
		t.Errorf("while it is in use: %v", err)
	}
	closed(t, a)
	if _, err := filearchive.Open(dir, "another"); !errors.Is(err, filearchive.ErrOtherCluster) {
		t.Errorf("of another cluster: %v", err)
	}
}

func TestGolden_TheFileIsThatOfTheFormat(t *testing.T) {
	dir := t.TempDir()
	a, all := filled(t, dir)
	closed(t, a)
	got, err := os.ReadFile(filepath.Join(dir, "archive-3"))
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "archive-3")
	if _, err := os.Stat(golden); *update && errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(golden, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the file has other bytes")
	}
	read := t.TempDir()
	if err := os.WriteFile(filepath.Join(read, "archive-3"), want, 0o600); err != nil {
		t.Fatal(err)
	}
	wantArchived(t, open(t, read), all)
}
