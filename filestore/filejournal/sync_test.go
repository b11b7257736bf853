package filejournal_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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

// flushing returns a journal in which the sync of an entry is under way that fails. The entry is of an age, in
// nanoseconds.
func flushing(t *testing.T, age *atomic.Int64) (*faultdisk.OneSync, *filejournal.Journal) {
	t.Helper()
	d := faultdisk.NewOneSync()
	o := filejournal.Options{Durability: filejournal.Opportunistic, SegmentBytes: 2000, Boot: "first", Lag: 1}
	began := time.Now()
	j, err := filejournal.OpenLayer(d, o.At(func() time.Time { return began.Add(time.Duration(age.Load())) }))
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

// A disk that hangs holds up the answers once the oldest entry that may be lost is as old as the bound says.
func TestOpportunistic_AnswersNoMoreThanTheLagWhileASyncIsUnderWay(t *testing.T) {
	var age atomic.Int64
	d, j := flushing(t, &age)
	for number := uint64(2); number < 5; number++ {
		if err := j.Append(long(number)); err != nil {
			t.Fatal(err)
		}
	}
	age.Store(int64(time.Millisecond))
	var done atomic.Bool
	ended := make(chan error, 1)
	go func() {
		err := j.Append(long(5))
		done.Store(true)
		ended <- err
	}()
	aWhile(done.Load)
	if done.Load() {
		t.Error("an entry is answered while one that is older than the lag is not synced")
	}
	d.GoOn()
	if err := <-ended; !errors.Is(err, syscall.EIO) {
		t.Errorf("the sync has failed, and the entry behind it says %v", err)
	}
	if err := j.Failed(); !errors.Is(err, syscall.EIO) {
		t.Errorf("the sync has failed, and Failed says %v", err)
	}
	_ = j.Close()
}

// A disk tells one sync alone that a write failed: one beside it says that all is well.
func TestSync_ThatFailsWhileAnotherSegmentBeginsEndsAllWriting(t *testing.T) {
	d, j := flushing(t, new(atomic.Int64))
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
	d, j := flushing(t, new(atomic.Int64))
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

// A system takes for written what a sync has failed to write: once its process has begun again, a crash of the machine
// leaves all that was answered all the same.
func TestStrict_WhatIsAnsweredAfterASyncThatFailedOutlivesACrashOfTheMachine(t *testing.T) {
	for synced := range 3 {
		d := faultdisk.New()
		o := filejournal.Options{Boot: "first"}
		j, err := filejournal.OpenLayer(d, o)
		if err != nil {
			t.Fatal(err)
		}
		for number := 1; number <= synced; number++ {
			if err := j.Append(long(uint64(number))); err != nil {
				t.Fatal(err)
			}
		}
		d.FailAt(2, syscall.EIO) // the entry is written, and its sync fails
		if err := j.Append(long(uint64(synced) + 1)); !errors.Is(err, syscall.EIO) {
			t.Fatalf("the sync has failed, and the entry says %v", err)
		}
		_ = j.Close()
		d = d.Restart()
		if j, err = filejournal.OpenLayer(d, o); err != nil {
			t.Fatal(err)
		}
		there := uint64(0)
		for e := range j.Read(0, 1) {
			there = e.Number
		}
		for range 2 {
			there++
			if err := j.Append(long(there)); err != nil {
				t.Fatal(err)
			}
		}
		after := d.Crash(fates(nil)["nothing"])
		if j, err = filejournal.OpenLayer(after, filejournal.Options{Boot: "second"}); err != nil {
			t.Fatal(err)
		}
		left := uint64(0)
		for e, err := range j.Read(0, 1) {
			if err != nil {
				t.Fatal(err)
			}
			left = e.Number
		}
		if left != there {
			t.Errorf("of %d entries that were answered or read, %d are left", there, left)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
