package filejournal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
)

// unopened is a disk on which no file can be opened for a while.
type unopened struct {
	disk.Rewritable
	why  atomic.Pointer[syscall.Errno] // nil: files can be opened
	dirs atomic.Int64                  // of so many SyncDir none can be opened
}

func (u *unopened) fails(name string) error {
	if why := u.why.Load(); why != nil {
		return &fs.PathError{Op: "open", Path: name, Err: *why}
	}
	return nil
}

// Open implements disk.Layer.
func (u *unopened) Open(name string, how disk.Access) (disk.File, int64, error) {
	if err := u.fails(name); err != nil {
		return nil, 0, err
	}
	return u.Rewritable.Open(name, how)
}

// SyncDir implements disk.Layer.
func (u *unopened) SyncDir() error {
	if u.dirs.Add(-1) >= 0 {
		return &fs.PathError{Op: "open", Path: ".", Err: syscall.EMFILE}
	}
	return u.Rewritable.SyncDir()
}

// While a process has too many files open, or the machine, nothing is written, and it goes on when that is over.
func TestOpen_ThatFailsForNowIsAsHarmlessAsAFullDisk(t *testing.T) {
	for _, why := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		for name, o := range durabilities() {
			l := &unopened{Rewritable: faultdisk.New()}
			j, err := filejournal.OpenLayer(l, small(o))
			if err != nil {
				t.Fatal(err)
			}
			refused, written := 0, uint64(0)
			for round := range 40 {
				if round%2 == 0 {
					l.why.Store(&why)
				}
				k := journal.Key{Slot: round % 2}
				s := journal.Snapshot{First: max(written, 1), Parts: [][]byte{fmt.Append(nil, round)}}
				e := journal.Entry{Number: written + 1, Revision: int64(written + 1), Data: make([]byte, 1500)}
				if err = j.WriteSnapshot(k, s); err != nil != (round%2 == 0) || err != nil && !errors.Is(err, journal.ErrFull) {
					t.Fatalf("%s, %s: snapshot %d: %v", name, why, round, err)
				}
				err = j.Append(e) // some begin another segment
				if err != nil && (round%2 != 0 || !errors.Is(err, journal.ErrFull)) {
					t.Fatalf("%s, %s: entry %d: %v", name, why, e.Number, err)
				}
				l.why.Store(nil)
				if err != nil {
					refused++
					err = j.Append(e)
				}
				if err != nil {
					t.Fatalf("%s, %s: entry %d after it was refused: %v", name, why, e.Number, err)
				}
				written++
			}
			if err := j.Close(); err != nil || refused == 0 {
				t.Errorf("%s, %s: %d entries were refused; close: %v", name, why, refused, err)
			}
		}
	}
}

// Once a file has its new name nothing can be taken back: the directory is synced as soon as it can be opened.
func TestOpen_OfTheDirectoryIsTriedAgainAfterARename(t *testing.T) {
	l := &unopened{Rewritable: faultdisk.New()}
	j, err := filejournal.OpenLayer(l, small(filejournal.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	l.dirs.Store(3)
	if err := j.WriteSnapshot(journal.Key{}, journal.Snapshot{}); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
