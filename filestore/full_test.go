package filestore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
	"taskledger/store"
)

// wantFull asserts that the usage of a store says whether it is full.
func wantFull(t *testing.T, s *filestore.Store, want bool, when string) {
	t.Helper()
	if u, err := s.Usage(t.Context()); err != nil || u.Full != want {
		t.Errorf("%s, full is %t, want %t; %v", when, u.Full, want, err)
	}
}

// onDisk makes a store in files of a disk, with an entry and the parts of a snapshot.
func onDisk(t *testing.T) (*writer, *faultdisk.Disk, store.SnapshotInfo) {
	t.Helper()
	d := faultdisk.New()
	j, err := filejournal.OpenLayer(d, filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	w := own(t, open(t, j), 0)
	w.fill(1)
	return w, d, w.put()
}

// A snapshot is given up in the end. Nothing waits any more then, and nothing would say that there is room again.
func TestUsage_IsFullAsLongAsAWriteWaitsForRoomAndNoLonger(t *testing.T) {
	publish := func(ctx context.Context, w *writer, s store.SnapshotInfo) error {
		_, err := w.store.Publish(ctx, w.own, store.SnapshotPointer{}, s)
		return err
	}
	appends := func(ctx context.Context, w *writer, _ store.SnapshotInfo) error { return w.appendIn(ctx) }
	for name, write := range map[string]func(context.Context, *writer, store.SnapshotInfo) error{
		"Publish": publish, "Append": appends,
	} {
		for ends, room := range map[string]bool{"WithItsContext": false, "WithRoom": true} {
			t.Run(name+ends, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, d, snapshot := onDisk(t)
					wantFull(t, w.store, false, "with room")
					d.Room(d.Used())
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					ended := make(chan error, 1)
					go func() { ended <- write(ctx, w, snapshot) }()
					synctest.Wait()
					wantFull(t, w.store, true, "while a write waits")
					session, err := w.store.Join(t.Context(), store.NodeInfo{Name: "other", Reads: written}, time.Hour)
					if err == nil {
						info := func() store.NodeInfo { return store.NodeInfo{Name: "other", Reads: written} }
						err = w.store.Update(t.Context(), session, info)
					}
					if err != nil {
						t.Fatal(err)
					}
					wantFull(t, w.store, true, "after calls that write nothing, while a write waits")
					if room {
						d.Room(0)
					}
					if err := <-ended; room != (err == nil) || !room && !errors.Is(err, store.ErrFull) {
						t.Errorf("it ends with %v", err)
					}
					wantFull(t, w.store, false, "once nothing waits")
				})
			})
		}
	}
}

// What follows the cut of a trim is left to the next snapshot where there is no room for it.
func TestUsage_IsNotFullAfterATrimThatCouldNotGiveItsRoomBack(t *testing.T) {
	j, snapshots := new(atSnapshots), 0
	j.before = func() error {
		if snapshots++; snapshots == 3 {
			return journal.ErrFull
		}
		return nil
	}
	s := open(t, j)
	w := own(t, s, 0)
	w.fill(5)
	w.trim(3)
	if snapshots != 3 {
		t.Fatalf("%d snapshots were written, and the third one is of the trim", snapshots)
	}
	wantFull(t, s, false, "after a trim for which nothing waits")
}
