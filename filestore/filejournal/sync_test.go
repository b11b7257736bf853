package filejournal_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
)

// aWhile lets others run until something is so, or for a while where it never will be.
func aWhile(so func() bool) {
	for range 20_000 {
		if so() {
			return
		}
		runtime.Gosched()
	}
}

// flushing returns a journal in which the sync of an entry is under way that fails.
func flushing(t *testing.T) (*faultdisk.OneSync, *filejournal.Journal) {
	t.Helper()
	d := faultdisk.NewOneSync()
	o := filejournal.Options{Durability: filejournal.Opportunistic, SegmentBytes: 2000, Boot: "first", Lag: 1}
	j, err := filejournal.OpenLayer(d, o)
	if err != nil {
		t.Fatal(err)
	}
	d.Arm()
	if err := j.Append(long(1)); err != nil {
		t.Fatal(err)
	}
	<-d.Began
	return d, j
}

// long makes an entry so long that a segment has six.
func long(number uint64) journal.Entry {
	return journal.Entry{Number: number, Revision: int64(number), Data: make([]byte, 300)}
}

// A disk tells one sync alone that a write failed: one beside it says that all is well.
func TestSync_ThatFailsWhileAnotherSegmentBeginsEndsAllWriting(t *testing.T) {
	d, j := flushing(t)
	const most = 60
	var answered atomic.Uint64
	ended := make(chan error, 1)
	go func() {
		for number := uint64(2); number < most; number++ {
			if err := j.Append(long(number)); err != nil {
				ended <- err
				return
			}
			answered.Store(number)
		}
		ended <- nil
	}()
	aWhile(func() bool { return answered.Load() > 12 })
	d.GoOn()
	if err := <-ended; !errors.Is(err, syscall.EIO) {
		t.Errorf("after the sync has failed, entries up to %d are answered; %v", answered.Load(), err)
	}
	if err := j.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("it is closed, and says %v", err)
	}
}

func TestSync_ThatFailsLeavesNoSnapshotToBeAnsweredBesideIt(t *testing.T) {
	d, j := flushing(t)
	var done atomic.Bool
	ended := make(chan error, 1)
	go func() {
		err := j.WriteSnapshot(journal.Key{}, journal.Snapshot{First: 1})
		done.Store(true)
		ended <- err
	}()
	aWhile(done.Load)
	d.GoOn()
	if err := <-ended; !errors.Is(err, syscall.EIO) {
		t.Errorf("the snapshot says that what was written before is durable: %v", err)
	}
	if err := j.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("it is closed, and says %v", err)
	}
}

// A snapshot is large, and its disk slow: the notes of the store, with which it reserves numbers, do not wait for that.
func TestWriteSnapshot_LeavesEntriesAndOtherSnapshotsToBeWrittenMeanwhile(t *testing.T) {
	d := faultdisk.NewOneSync()
	j, err := filejournal.OpenLayer(d, filejournal.Options{Boot: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(long(1)); err != nil {
		t.Fatal(err)
	}
	first := make(chan error, 1)
	d.Arm()
	go func() { first <- j.WriteSnapshot(journal.Key{}, journal.Snapshot{First: 1, Parts: [][]byte{{1}}}) }()
	<-d.Began
	var done atomic.Bool
	ended := make(chan error, 1)
	go func() {
		err := errors.Join(
			j.WriteSnapshot(journal.Key{Shard: journal.Notes}, journal.Snapshot{}),
			j.WriteSnapshot(journal.Key{Shard: 1}, journal.Snapshot{}),
			j.WriteSnapshot(journal.Key{Slot: 1}, journal.Snapshot{First: 1}),
			j.Append(long(2)),
		)
		done.Store(true)
		ended <- err
	}()
	aWhile(done.Load)
	if !done.Load() {
		t.Error("others wait for the disk to have a snapshot")
	}
	d.GoOn()
	if err := <-first; !errors.Is(err, syscall.EIO) {
		t.Errorf("the snapshot whose sync failed: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = j.Close()
}
