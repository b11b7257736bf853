package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/internal/testkit"
	"taskledger/store"
)

// copyScript copies a shard with a snapshot and one without.
func copyScript(ctx context.Context, r *filestore.Receiver) error {
	records := func(from, to uint64) (all []store.Record) {
		for n := from; n <= to; n++ {
			all = append(all, store.Record{Head: store.Head{Number: n, Revision: int64(n)}, Data: fmt.Appendf(nil, "entry %0900d", n)})
		}
		return all
	}
	kept := store.SnapshotPointer{Revision: 1, Kept: []store.SnapshotInfo{{Entry: 5, Epoch: 1, Parts: 1, Bytes: 4}}}
	parts := func(store.SnapshotInfo) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) { yield([]byte("part"), nil) }
	}
	for _, step := range []func() error{
		func() error { return r.Begin(ctx) },
		func() error { return r.AddShard(ctx, 0, store.ReceivedShard{First: 5, Pointer: kept}, parts) },
		func() error { return r.AddEntries(ctx, 0, records(5, 9)) },
		func() error { return r.AddEntries(ctx, 0, records(10, 12)) },
		func() error { return r.AddShard(ctx, 1, store.ReceivedShard{}, parts) },
		func() error { return r.AddEntries(ctx, 1, records(1, 6)) },
		func() error { return r.Finish(ctx, 1000, store.Reads{}) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// copyOn copies onto a disk, to the end or until that is killed.
func copyOn(t *testing.T, disk *faultdisk.Disk, o filejournal.Options) error {
	t.Helper()
	j, err := filejournal.OpenLayer(disk, o)
	if err != nil {
		return err
	}
	r, err := filestore.ReceiveIn(j, copied, "a test")
	if err == nil {
		if _, finished, _ := r.Copied(t.Context()); !finished {
			err = copyScript(t.Context(), r)
		}
	}
	return errors.Join(err, j.Close())
}

// fatesOfCopies says what the disk keeps of what was not synced.
var fatesOfCopies = map[string]faultdisk.Fate{
	"nothing": {
		Names:  func(int) int { return 0 },
		Length: func(synced, _ int) int { return synced },
		Sector: func() bool { return false },
	},
	"lengths alone": {
		Names:  func(n int) int { return n },
		Length: func(_, written int) int { return written },
		Sector: func() bool { return false },
	},
	"everything": {
		Names:  func(n int) int { return n },
		Length: func(_, written int) int { return written },
		Sector: func() bool { return true },
	},
}

func TestReceiver_KilledAtAnyChangeOfTheDiskIsEndedByTheNextOne(t *testing.T) {
	for _, durability := range []filejournal.Durability{filejournal.Strict, filejournal.Opportunistic} {
		t.Run(string(durability), func(t *testing.T) {
			t.Parallel()
			o := filejournal.Options{Durability: durability, SegmentBytes: 4000, Boot: "first"}
			if durability == filejournal.Opportunistic {
				o.Lag = 1 << 50
			}
			whole := faultdisk.New()
			if err := copyOn(t, whole, o); err != nil {
				t.Fatal(err)
			}
			var all []int
			for n := 1; n <= whole.Changes(); n++ {
				all = append(all, n)
			}
			for _, n := range testkit.Some(all, 3) {
				for name, fate := range fatesOfCopies {
					disk := faultdisk.New()
					disk.KillAt(n)
					if err := copyOn(t, disk, o); err == nil {
						t.Fatalf("killed at change %d, the copy ends", n)
					}
					after := o
					after.Boot = "second"
					disk = disk.Crash(fate)
					unfinished(t, disk, after, n)
					if err := copyOn(t, disk, after); err != nil {
						t.Errorf("killed at change %d, %s, the next copy fails: %v", n, name, err)
						continue
					}
					wantCopied(t, disk, after)
				}
			}
		})
	}
}

// A copy into a directory looks at it before it opens that, and is killed before there is anything of a store, too.
func TestReceive_OfADirectoryInWhichACopyWasKilledGoesOn(t *testing.T) {
	o := filejournal.Options{SegmentBytes: 4000, Boot: "first"}
	whole := faultdisk.New()
	if err := copyOn(t, whole, o); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= whole.Changes(); n++ {
		if n > 12 && n%5 != 0 { // the first ones make a journal
			continue
		}
		disk := faultdisk.New()
		disk.KillAt(n)
		_ = copyOn(t, disk, o)
		dir := t.TempDir()
		left := disk.Restart().Contents()
		left["lock"] = nil
		for name, data := range left {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := filestore.Receive(dir, copied, "a test", o)
		if err != nil {
			t.Errorf("killed at change %d of %d, the next copy is refused: %v", n, whole.Changes(), err)
			continue
		}
		if _, finished, _ := r.Copied(t.Context()); !finished {
			err = copyScript(t.Context(), r)
		}
		if err := errors.Join(err, r.Close()); err != nil {
			t.Errorf("killed at change %d, the next copy fails: %v", n, err)
			continue
		}
		wantCopied(t, faultdisk.Of(filesOf(t, dir)), o)
	}
}

// filesOf returns the files of a directory but for its lock.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for name, data := range contents(t, dir) {
		if name != "lock" {
			all[name] = []byte(data)
		}
	}
	return all
}

// unfinished asserts that a node finds a copy that is finished, one that is not and says so, or nothing of one.
func unfinished(t *testing.T, disk *faultdisk.Disk, o filejournal.Options, n int) {
	t.Helper()
	other := faultdisk.Of(disk.Contents())
	j, err := filejournal.OpenLayer(other, o)
	if err != nil {
		t.Errorf("killed at change %d: %v", n, err)
		return
	}
	s, err := filestore.New(j, filestore.Config{})
	if err == nil && s.Cluster().ID == copied.ID && s.Last(0).Number != 12 || err != nil && !errors.Is(err, store.ErrUnfinished) {
		t.Errorf("killed at change %d, it opens: %v", n, err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func wantCopied(t *testing.T, disk *faultdisk.Disk, o filejournal.Options) {
	t.Helper()
	j, err := filejournal.OpenLayer(disk, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := filestore.New(j, filestore.Config{ID: copied.ID})
	if err != nil {
		t.Fatal(err)
	}
	for shard, want := range map[int][2]uint64{0: {5, 12}, 1: {1, 6}} {
		next := want[0]
		for rec, err := range s.Read(t.Context(), shard, next) {
			if err != nil || rec.Number != next || rec.Revision != int64(next) {
				t.Fatalf("entry %+v of shard %d, %v, want %d", rec.Head, shard, err, next)
			}
			next++
		}
		if next != want[1]+1 {
			t.Errorf("shard %d ends with entry %d, want %d", shard, next-1, want[1])
		}
	}
	if l, err := s.Loss(t.Context(), 0); err != nil || l.Revision != 0 {
		t.Errorf("a loss of a copy that is whole: %+v, %v", l, err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestReceiver_OnAFullDiskEndsAndTheNextOneGoesOn(t *testing.T) {
	whole := faultdisk.New()
	o := filejournal.Options{SegmentBytes: 4000}
	if err := copyOn(t, whole, o); err != nil {
		t.Fatal(err)
	}
	for room := int64(1500); room < whole.Used(); room += 700 {
		disk := faultdisk.New()
		disk.Room(room)
		err := copyOn(t, disk, o)
		disk.Room(0)
		if err == nil {
			t.Errorf("with room for %d bytes of %d, it ends", room, whole.Used())
		}
		if err := copyOn(t, disk, o); err != nil {
			t.Errorf("with room for %d bytes, the next copy fails: %v", room, err)
			continue
		}
		wantCopied(t, disk, o)
	}
}
