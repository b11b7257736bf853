package filelogs_test

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/filestore/filelogs"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/store"
	"taskledger/tasklog"
)

// Segments that end by their age come beside as many that end by their size.
func TestLogs_OfManySegmentsHaveFewFilesOpen(t *testing.T) {
	const byAge, bySize, most = 15, 15, 18 // 16 to be read, one to be written, and one that begins
	synctest.Test(t, func(t *testing.T) {
		d := &faultdisk.Counted{Disk: faultdisk.New()}
		cfg := filelogs.Config{MaxBytes: filelogs.MinBytes, MaxAge: 1600 * time.Second}
		l, err := filelogs.OpenLayer(d, cfg)
		if err != nil {
			t.Fatal(err)
		}
		var end tasklog.End
		for range byAge {
			end = add(t, l, one, end, 1)
			time.Sleep(100 * time.Second)
		}
		end = fill(t, l, one, end, bySize*4)
		if names, err := d.List(); err != nil || len(names) < byAge+bySize {
			t.Fatalf("there are %d segments, %v", len(names), err)
		}
		read := func(last uint64) {
			for from := uint64(1); from <= last; from++ {
				got, err := l.Read(t.Context(), one, tasklog.Range{From: from, Bytes: 1})
				if err != nil || len(got.Batches) != 1 || got.Batches[0].Last() < from {
					t.Errorf("from line %d on: %d batches, %v", from, len(got.Batches), err)
				}
			}
		}
		var reading sync.WaitGroup
		for range 4 {
			reading.Go(func() { read(end.Line) })
		}
		last := fill(t, l, one, end, 5).Line
		reading.Wait()
		if _, n := d.Opened(); n > most {
			t.Errorf("%d files were open, want %d at most", n, most)
		}
		closed(t, l)
		if n, _ := d.Opened(); n != 0 {
			t.Errorf("%d files are left open", n)
		}
		if l, err = filelogs.OpenLayer(d, cfg); err != nil {
			t.Fatal(err)
		}
		if _, n := d.Opened(); n > 3 {
			t.Errorf("%d files were open at the start, want 3 at most", n)
		}
		read(last)
		closed(t, l)
	})
}

// A line that cannot be read for now is neither left out, nor taken for another one.
func TestLogs_WhoseFilesCannotBeOpenedForNowAreUnavailableAndMissNothing(t *testing.T) {
	d := &faultdisk.Counted{Disk: faultdisk.New()}
	l, err := filelogs.OpenLayer(d, filelogs.Config{MaxBytes: filelogs.MinBytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	first := tasklog.Batch{First: 1, Lines: []tasklog.Line{{At: 1, Text: "first"}}}
	if _, err = l.Append(t.Context(), one, tasklog.End{}, first); err != nil {
		t.Fatal(err)
	}
	var end tasklog.End
	for names := 1; names < 2; { // until another segment begins
		end = fill(t, l, other, end, 1)
		all, err := d.List()
		if err != nil {
			t.Fatal(err)
		}
		names = len(all)
	}
	d.Refuse(syscall.EMFILE)
	if got, err := l.Read(t.Context(), one, tasklog.Range{}); !errors.Is(err, store.ErrUnavailable) ||
		!strings.Contains(err.Error(), "too many open files") {
		t.Errorf("without a file to be opened %d batches are read, %v", len(got.Batches), err)
	}
	if _, err := l.Append(t.Context(), one, tasklog.End{}, first); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a batch that was acknowledged is sent again: %v", err)
	}
	d.Refuse(nil)
	has(t, l, one, 1)
	if _, err := l.Append(t.Context(), one, tasklog.End{}, first); err != nil {
		t.Errorf("a batch that was acknowledged is sent again: %v", err)
	}
}
