package filejournal_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
)

// synced returns how many entries a loss of power leaves that takes everything which was not synced.
func synced(t *testing.T, d *faultdisk.Disk) (n int) {
	t.Helper()
	o := filejournal.Options{Boot: "second"}
	j, err := filejournal.OpenLayer(d.Crash(fates(nil)["nothing"]), o)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, err := range j.Read(0, 1) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// One entry comes every tenth of a second: a crash at any time loses those of the last second at most, and some.
func TestOpportunistic_ACrashOfTheMachineLosesNoMoreThanTheLag(t *testing.T) {
	for _, lag := range []time.Duration{0, 200 * time.Millisecond, 3 * time.Second} {
		t.Run(fmt.Sprint(lag), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := faultdisk.New()
				j, err := filejournal.OpenLayer(d, filejournal.Options{
					Durability: filejournal.Opportunistic,
					Lag:        lag,
					Boot:       "first",
				})
				if err != nil {
					t.Fatal(err)
				}
				defer j.Close()
				const every = 100 * time.Millisecond
				if lag == 0 {
					lag = time.Second
				}
				lost := 0
				for n := 1; n <= 100; n++ {
					if err := j.Append(journal.Entry{Number: uint64(n), Revision: int64(n), Data: []byte("entry")}); err != nil {
						t.Fatal(err)
					}
					left := synced(t, d)
					if young := int(lag / every); n-left > young {
						t.Fatalf("of %d entries %d are synced: more than the last %d would be lost", n, left, young)
					}
					lost = max(lost, n-left)
					time.Sleep(every)
					synctest.Wait()
				}
				if lost < 1 {
					t.Error("nothing could have been lost: every entry was synced at once")
				}
			})
		})
	}
}

func TestStrict_NothingIsAnsweredThatACrashOfTheMachineLoses(t *testing.T) {
	d := faultdisk.New()
	j, err := filejournal.OpenLayer(d, filejournal.Options{Boot: "first"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for n := 1; n <= 20; n++ {
		if err := j.Append(journal.Entry{Number: uint64(n), Revision: int64(n), Data: []byte("entry")}); err != nil {
			t.Fatal(err)
		}
		if left := synced(t, d); left != n {
			t.Fatalf("of %d entries %d are synced", n, left)
		}
	}
}

// What comes while others are being synced is synced together: the first sync waits until everybody has come.
func TestStrict_ManyAtOnceShareASync(t *testing.T) {
	const writers = 64
	d := faultdisk.New()
	slow := &slowDisk{Disk: d, began: make(chan struct{}), goOn: make(chan struct{})}
	j, err := filejournal.OpenLayer(slow, filejournal.Options{Boot: "first"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	slow.syncs.Store(0)
	slow.slow.Store(true)
	var writing sync.WaitGroup
	write := func(shard int) {
		if err := j.Append(journal.Entry{Shard: shard, Number: 1, Revision: 1, Data: []byte("entry")}); err != nil {
			t.Error(err)
		}
	}
	writing.Go(func() { write(0) })
	<-slow.began
	for shard := 1; shard < writers; shard++ {
		writing.Go(func() { write(shard) })
	}
	for j.Waiting() < writers-1 {
		runtime.Gosched()
	}
	slow.slow.Store(false)
	close(slow.goOn)
	writing.Wait()
	if n := slow.syncs.Load(); n != 2 {
		t.Errorf("%d entries took %d syncs, want two", writers, n)
	}
}

// slowDisk counts syncs, of which one waits.
type slowDisk struct {
	*faultdisk.Disk
	slow        atomic.Bool
	syncs       atomic.Int64
	began, goOn chan struct{}
}

func (d *slowDisk) Open(name string, how disk.Access) (disk.File, int64, error) {
	f, size, err := d.Disk.Open(name, how)
	return slowFile{f, d}, size, err
}

type slowFile struct {
	disk.File
	of *slowDisk
}

func (f slowFile) Sync() error {
	if f.of.slow.Load() {
		close(f.of.began)
		<-f.of.goOn
		f.of.syncs.Add(1)
		return f.File.Sync()
	}
	f.of.syncs.Add(1)
	return f.File.Sync()
}
