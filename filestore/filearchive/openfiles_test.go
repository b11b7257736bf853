package filearchive_test

import (
	"errors"
	"sync"
	"syscall"
	"testing"

	"taskledger/filestore/filearchive"
	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// As many shards as there may be are archived and read at once.
func TestArchive_OfManyShardsHasFewFilesOpen(t *testing.T) {
	const most = 50 // 16 to be read, 16 to be written, and one that is made
	d := &faultdisk.Counted{Disk: faultdisk.New()}
	a, err := filearchive.OpenLayer(d, "cluster")
	if err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	for shard := range store.MaxShards {
		working.Go(func() {
			all := archivetest.Entries(t, shard, 1, 4)
			head, err := a.Archive(t.Context(), shard, store.ArchiveHead{}, all[:2])
			if err == nil {
				head, err = a.Archive(t.Context(), shard, head, all[2:])
			}
			if err == nil {
				err = a.Confirm(t.Context(), shard, head, all[2:])
			}
			last := uint64(0)
			for e, unread := range a.ReadArchive(t.Context(), shard, 1) {
				last, err = e.Number, errors.Join(err, unread)
			}
			if err != nil || last != 4 {
				t.Errorf("shard %d is read up to entry %d, %v", shard, last, err)
			}
		})
	}
	working.Wait()
	if _, n := d.Opened(); n > most {
		t.Errorf("%d files were open, want %d at most", n, most)
	}
	closed(t, a)
	if n, _ := d.Opened(); n != 0 {
		t.Errorf("%d files are left open", n)
	}
	if a, err = filearchive.OpenLayer(d, "cluster"); err != nil {
		t.Fatal(err)
	}
	if _, n := d.Opened(); n > 1 {
		t.Errorf("%d files were open at the start, want 1 at most", n)
	}
	closed(t, a)
}

func TestArchive_WithoutAFileToBeOpenedWritesNothingAndGoesOn(t *testing.T) {
	d := &faultdisk.Counted{Disk: faultdisk.New()}
	a, err := filearchive.OpenLayer(d, "cluster")
	if err != nil {
		t.Fatal(err)
	}
	all := archivetest.Entries(t, 3, 1, 4)
	head, err := a.Archive(t.Context(), 3, store.ArchiveHead{}, all[:2])
	if err != nil {
		t.Fatal(err)
	}
	d.Refuse(syscall.EMFILE)
	if _, err := a.Archive(t.Context(), 3, head, all[2:]); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("without a file to be opened: %v", err)
	}
	d.Refuse(nil)
	if head, err = a.Archive(t.Context(), 3, head, all[2:]); err != nil || head.Entry != 4 {
		t.Errorf("the archive ends with entry %d, %v", head.Entry, err)
	}
	closed(t, a)
}

func TestArchive_ThatIsClosedTakesNothingAndLosesNothing(t *testing.T) {
	d := faultdisk.New()
	a, err := filearchive.OpenLayer(d, "cluster")
	if err != nil {
		t.Fatal(err)
	}
	all := archivetest.Entries(t, 3, 1, 4)
	head, err := a.Archive(t.Context(), 3, store.ArchiveHead{}, all[:2])
	if err != nil {
		t.Fatal(err)
	}
	closed(t, a)
	for _, after := range []store.ArchiveHead{{}, head} {
		if _, err := a.Archive(t.Context(), 3, after, all[after.Entry:]); !errors.Is(err, disk.ErrReadOnly) {
			t.Errorf("archived behind entry %d after the end: %v", after.Entry, err)
		}
	}
	if a, err = filearchive.OpenLayer(d, "cluster"); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Head(t.Context(), 3); err != nil || got != head {
		t.Errorf("the head is %+v, %v, and %+v was answered", got, err, head)
	}
	closed(t, a)
}
