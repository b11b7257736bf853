package filearchive_test

import (
	"runtime"
	"testing"

	"taskledger/filestore/filearchive"
	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// measured notes the most bytes that were read at once.
type measured struct {
	*faultdisk.Disk
	most int
}

func (m *measured) Open(name string, how disk.Access) (disk.File, int64, error) {
	f, size, err := m.Disk.Open(name, how)
	return measuredFile{f, m}, size, err
}

type measuredFile struct {
	disk.File
	of *measured
}

func (f measuredFile) ReadAt(into []byte, at int64) (int, error) {
	f.of.most = max(f.of.most, len(into))
	return f.File.ReadAt(into, at)
}

// A file grows for ever: whoever opens it reads no more of it at once than a segment, and keeps little of that.
func TestOpen_TakesMemoryForASegmentAndNotForTheFile(t *testing.T) {
	const segments, params = 400, 8 << 10
	d := &measured{Disk: faultdisk.New()}
	a, err := filearchive.OpenLayer(d, "cluster")
	if err != nil {
		t.Fatal(err)
	}
	var head store.ArchiveHead
	for number := uint64(1); number <= segments; number++ {
		entry := archivetest.Entry(t, 3, number, params, archivetest.Task(number))
		if head, err = a.Archive(t.Context(), 3, head, []store.Record{entry}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	d.most = 0
	before := heap()
	if a, err = filearchive.OpenLayer(d, "cluster"); err != nil {
		t.Fatal(err)
	}
	kept := heap() - before
	if most := 2 * params; d.most > most {
		t.Errorf("%d bytes are read at once, want %d at most", d.most, most)
	}
	if each := kept / segments; each > 1000 { // some 130, and the filter
		t.Errorf("%d bytes of each segment are kept, of %d", each, params)
	}
	if is, err := a.Head(t.Context(), 3); err != nil || is != head {
		t.Errorf("the archive ends with %+v, %v, want %+v", is, err, head)
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
