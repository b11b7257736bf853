package filejournal_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
)

// countedDisk counts the files that are open.
type countedDisk struct {
	*faultdisk.Disk
	mu         sync.Mutex
	open, most int
}

func (d *countedDisk) count(f disk.File, size int64, err error) (disk.File, int64, error) {
	if err != nil {
		return nil, 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open++
	d.most = max(d.most, d.open)
	return &countedFile{File: f, of: d}, size, nil
}

func (d *countedDisk) Open(name string, how disk.Access) (disk.File, int64, error) {
	return d.count(d.Disk.Open(name, how))
}

type countedFile struct {
	disk.File
	of     *countedDisk
	closed bool
}

func (f *countedFile) ReadAt(into []byte, at int64) (int, error) {
	f.of.mu.Lock()
	closed := f.closed
	f.of.mu.Unlock()
	if closed {
		panic("a file is read that was closed")
	}
	return f.File.ReadAt(into, at)
}

func (f *countedFile) Close() error {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.of.open--
	}
	return f.File.Close()
}

// A journal of hundreds of segments is read and written with a bounded number of open files, whoever reads it, and has
// closed them all at its end. Segments are removed and written anew meanwhile.
func TestJournal_OfManySegmentsHasFewFilesOpen(t *testing.T) {
	const entries, most = 600, 70
	d := &countedDisk{Disk: faultdisk.New()}
	o := small(filejournal.Options{})
	o.SegmentBytes = 1000
	j, err := filejournal.OpenLayer(d, o)
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n <= entries; n++ {
		for shard := range 2 {
			e := journal.Entry{Shard: shard, Number: n, Revision: int64(n), Data: make([]byte, 400)}
			if err := j.Append(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	var reading sync.WaitGroup
	for seed := range uint64(4) {
		reading.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 200 {
				from := random.Uint64N(entries) + 1
				for e, err := range j.Read(1, from) {
					if err != nil || e.Number != from {
						t.Errorf("entry %d is %d, %v", from, e.Number, err)
						return
					}
					if from++; random.IntN(20) == 0 {
						break
					}
				}
			}
		})
	}
	for first := uint64(50); first <= entries; first += 50 {
		err := j.WriteSnapshot(journal.Key{Shard: 0}, journal.Snapshot{First: first})
		if err != nil {
			t.Fatal(err)
		}
	}
	reading.Wait()
	if d.most > most {
		t.Errorf("%d files were open, want %d at most", d.most, most)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if d.open != 0 {
		t.Errorf("%d files are left open", d.open)
	}
	d.most = 0
	if j, err = filejournal.OpenLayer(d, o); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if d.most > 3 {
		t.Errorf("%d files were open at the start, want 3 at most", d.most)
	}
}
