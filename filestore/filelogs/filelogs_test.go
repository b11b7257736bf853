package filelogs_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"taskledger/events"
	"taskledger/filestore/filelogs"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/tasklog"
	"taskledger/tasklog/tasklogtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// one is the log of most tests, and other fills the store.
var (
	one   = tasklog.Attempt{Shard: 3, Life: events.RefOf(7, 1), Number: 1}
	other = tasklog.Attempt{Shard: 200, Life: events.RefOf(9, 1), Number: 1}
)

func openDir(t *testing.T, dir string, cfg filelogs.Config) *filelogs.Logs {
	t.Helper()
	l, err := filelogs.Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func closed(t *testing.T, l *filelogs.Logs) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// large makes a batch of one line of 16 KiB.
func large(number uint64) tasklog.Batch {
	return tasklog.Batch{First: number, Lines: []tasklog.Line{{
		At:   tasklogtest.Begin + events.Millis(number),
		Text: strings.Repeat("x", tasklog.MaxLineBytes),
	}}}
}

// fill appends large batches to a log, and returns the end.
func fill(t *testing.T, l *filelogs.Logs, of tasklog.Attempt, end tasklog.End, n int) tasklog.End {
	t.Helper()
	for range n {
		var err error
		if end, err = l.Append(t.Context(), of, end, large(end.Line+1)); err != nil {
			t.Fatal(err)
		}
	}
	return end
}

// add appends a batch of n lines.
func add(t *testing.T, l *filelogs.Logs, of tasklog.Attempt, end tasklog.End, n int) tasklog.End {
	t.Helper()
	end, err := l.Append(t.Context(), of, end, tasklogtest.Lines(end.Line+1, n))
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// has wants batches that begin with certain lines.
func has(t *testing.T, l *filelogs.Logs, of tasklog.Attempt, firsts ...uint64) {
	t.Helper()
	got, err := l.Read(t.Context(), of, tasklog.Range{})
	if err != nil {
		t.Fatal(err)
	}
	var is []uint64
	for _, b := range got.Batches {
		is = append(is, b.First)
	}
	if !slices.Equal(is, firsts) {
		t.Errorf("batches begin with lines %v, want %v", is, firsts)
	}
}

func bytesIn(t *testing.T, dir string) (n int64) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

func TestLogs_KeepTheContract(t *testing.T) {
	tasklogtest.Run(t, func(t *testing.T) tasklogtest.Fixture {
		l := openDir(t, t.TempDir(), filelogs.Config{MaxBytes: filelogs.MinBytes})
		return tasklogtest.Fixture{
			Store: l,
			Empty: func(tasklog.Attempt) { fill(t, l, other, tasklog.End{}, filelogs.MinBytes/tasklog.MaxLineBytes+1) },
		}
	})
}

func TestOpen_FindsWhatWasWrittenAndNothingThatWasRemoved(t *testing.T) {
	dir := t.TempDir()
	l := openDir(t, dir, filelogs.Config{})
	trimmed, second := one, one
	trimmed.Number, second.Number = 2, 3
	end := add(t, l, one, tasklog.End{}, 3)
	first := add(t, l, trimmed, tasklog.End{}, 2)
	add(t, l, trimmed, first, 2)
	add(t, l, other, tasklog.End{}, 1)
	add(t, l, second, tasklog.End{}, 1)
	err := errors.Join(
		l.Trim(t.Context(), trimmed, first),
		l.Trim(t.Context(), second, tasklog.Whole),
		l.Forget(t.Context(), other.Shard, tasklog.EveryLife, 0),
	)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, l)
	l = openDir(t, dir, filelogs.Config{})
	has(t, l, one, 1)
	has(t, l, trimmed, 3)
	has(t, l, second)
	has(t, l, other)
	again := add(t, l, one, end, 1)
	if again.Place <= end.Place {
		t.Errorf("place %d follows %d", again.Place, end.Place)
	}
}

func TestLogs_BeyondTheirBytesTheOldestGo(t *testing.T) {
	dir := t.TempDir()
	l := openDir(t, dir, filelogs.Config{MaxBytes: filelogs.MinBytes})
	add(t, l, one, tasklog.End{}, 3)
	end := fill(t, l, other, tasklog.End{}, 200)
	if n := bytesIn(t, dir); n > filelogs.MinBytes {
		t.Errorf("%d bytes, want %d at most", n, filelogs.MinBytes)
	}
	has(t, l, one)
	got, err := l.Read(t.Context(), other, tasklog.Range{})
	if err != nil || got.Last != end.Line || len(got.Batches) == 0 {
		t.Errorf("the newest: %d batches up to line %d, %v", len(got.Batches), got.Last, err)
	}
}

// A long task must not lose its log to short ones that are forgotten again.
func TestLogs_WhatIsForgottenMakesRoomForWhatIsOld(t *testing.T) {
	dir := t.TempDir()
	cfg := filelogs.Config{MaxBytes: filelogs.MinBytes}
	l := openDir(t, dir, cfg)
	long := add(t, l, one, tasklog.End{}, 3)
	for life := range events.Ref(100) {
		short := tasklog.Attempt{Shard: 1, Life: life + 1, Number: 1}
		fill(t, l, short, tasklog.End{}, 3)
		if life%7 == 0 {
			long = add(t, l, one, long, 1)
		}
		if err := l.Forget(t.Context(), 1, life+1, 0); err != nil {
			t.Fatal(err)
		}
	}
	firsts := []uint64{1}
	for first := uint64(4); first <= long.Line; first++ {
		firsts = append(firsts, first)
	}
	has(t, l, one, firsts...)
	all, err := os.ReadDir(dir)
	if err != nil || len(all) > 10 {
		t.Errorf("%d files, %v", len(all), err)
	}
	closed(t, l)
	l = openDir(t, dir, cfg)
	has(t, l, one, firsts...)
	if lives, _, err := l.Lives(t.Context(), 1, 0); err != nil || len(lives) > 0 {
		t.Errorf("lives %v are back, %v", lives, err)
	}
}

func TestLogs_BeyondTheirAgeGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := filelogs.OpenLayer(faultdisk.New(), filelogs.Config{MaxAge: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		add(t, l, one, tasklog.End{}, 1)
		time.Sleep(50 * time.Minute)
		add(t, l, other, tasklog.End{}, 1)
		has(t, l, one, 1)
		time.Sleep(15 * time.Minute)
		has(t, l, one)
		has(t, l, other, 1)
		time.Sleep(time.Hour)
		has(t, l, other)
		got, err := l.Read(t.Context(), one, tasklog.Range{})
		if now := events.MillisOf(time.Now()); err != nil || got.Oldest != now {
			t.Errorf("nothing from before %d, %v; it is %d", got.Oldest, err, now)
		}
	})
}

// files returns the files of logs that were closed, without the lock.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	contents := map[string][]byte{}
	all, err := os.ReadDir(dir)
	for _, e := range all {
		if e.Name() == "lock" {
			continue
		}
		text, bad := os.ReadFile(filepath.Join(dir, e.Name()))
		contents[e.Name()], err = text, errors.Join(err, bad)
	}
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

const firstFile = "logs-0000000000000001"

func TestOpen_CutsATornEndAndNamesDamage(t *testing.T) {
	dir := t.TempDir()
	l := openDir(t, dir, filelogs.Config{})
	end := add(t, l, one, tasklog.End{}, 1)
	whole := len(files(t, dir)[firstFile])
	add(t, l, one, end, 5)
	closed(t, l)
	content := files(t, dir)[firstFile]
	for cut := whole; cut < len(content); cut++ {
		torn := faultdisk.Of(map[string][]byte{firstFile: content[:cut]})
		l, err := filelogs.OpenLayer(torn, filelogs.Config{})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		has(t, l, one, 1)
		add(t, l, one, end, 1)
		closed(t, l)
	}
	for at := range content {
		flipped := bytes.Clone(content)
		flipped[at] ^= 4
		_, err := filelogs.OpenLayer(faultdisk.Of(map[string][]byte{firstFile: flipped}), filelogs.Config{})
		if !errors.Is(err, events.ErrDamaged) || !strings.Contains(err.Error(), firstFile) {
			t.Fatalf("bit at %d: %v", at, err)
		}
	}
}

func TestOpen_RefusesADirectoryInUseAndOneOfAnotherCluster(t *testing.T) {
	dir := t.TempDir()
	l := openDir(t, dir, filelogs.Config{Cluster: "c1"})
	_, err := filelogs.Open(dir, filelogs.Config{Cluster: "c1"})
	if !errors.Is(err, filelogs.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("in use: %v", err)
	}
	if err := filelogs.Check(dir, "c1"); !errors.Is(err, filelogs.ErrInUse) {
		t.Errorf("checked in use: %v", err)
	}
	closed(t, l)
	before := files(t, dir)
	_, err = filelogs.Open(dir, filelogs.Config{Cluster: "c2"})
	named := err != nil && strings.Contains(err.Error(), dir) && strings.Contains(err.Error(), "c1")
	if !errors.Is(err, filelogs.ErrOtherCluster) || !named {
		t.Errorf("of another cluster: %v", err)
	}
	if after := files(t, dir); !bytes.Equal(before[firstFile], after[firstFile]) || len(before) != len(after) {
		t.Error("the files have changed")
	}
	if err := filelogs.Check(dir, "c2"); !errors.Is(err, filelogs.ErrOtherCluster) {
		t.Errorf("checked for another cluster: %v", err)
	}
	if err := errors.Join(filelogs.Check(dir, "c1"), filelogs.Check(filepath.Join(dir, "none"), "c1")); err != nil {
		t.Errorf("checked: %v", err)
	}
	if _, err := l.Read(t.Context(), one, tasklog.Range{}); !errors.Is(err, filelogs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestLogs_WithoutRoomSayThatTheyAreFullAndGoOn(t *testing.T) {
	d := faultdisk.New()
	l, err := filelogs.OpenLayer(d, filelogs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	end := add(t, l, one, tasklog.End{}, 1)
	d.Room(d.Used() + 100)
	if _, err := l.Append(t.Context(), one, end, large(2)); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("without room: %v", err)
	}
	d.Room(0)
	add(t, l, one, end, 1)
	has(t, l, one, 1, 2)
}

var update = flag.Bool("update", false, "write the golden file where it is missing; an existing one is never changed")

func TestFormat_IsThatOfTheGoldenFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := faultdisk.New()
		l, err := filelogs.OpenLayer(d, filelogs.Config{Cluster: "golden"})
		if err != nil {
			t.Fatal(err)
		}
		end := add(t, l, one, tasklog.End{}, 2)
		add(t, l, one, end, 1)
		add(t, l, other, tasklog.End{}, 1)
		err = errors.Join(l.Trim(t.Context(), one, end), l.Forget(t.Context(), other.Shard, other.Life, 0), l.Close())
		if err != nil {
			t.Fatal(err)
		}
		is, path := d.Contents()[firstFile], filepath.Join("testdata", firstFile)
		want, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && *update {
			err = errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, is, 0o644))
			want = is
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(is, want) {
			t.Errorf("it has %d bytes that differ from the %d of %s", len(is), len(want), path)
		}
		d = faultdisk.Of(map[string][]byte{firstFile: want})
		l, err = filelogs.OpenLayer(d, filelogs.Config{Cluster: "golden"})
		if err != nil {
			t.Fatal(err)
		}
		has(t, l, one, 3)
		has(t, l, other)
		if err := l.Close(); err != nil {
			t.Error(fmt.Errorf("close: %w", err))
		}
	})
}
