package filearchive_test

import (
	"runtime"
	"testing"

	"taskledger/filestore/filearchive"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// An archive grows for ever, and a question of one task must not copy the list of its segments.
func TestArchive_IsReadWithoutACopyOfTheListOfItsSegments(t *testing.T) {
	const segments, most = 300, 4 << 10 // some 130 bytes a segment are 39 KiB
	a, err := filearchive.OpenLayer(faultdisk.New(), "cluster")
	if err != nil {
		t.Fatal(err)
	}
	var head store.ArchiveHead
	for _, e := range archivetest.Entries(t, 3, 1, segments) {
		if head, err = a.Archive(t.Context(), 3, head, []store.Record{e}); err != nil {
			t.Fatal(err)
		}
	}
	const times = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		for e, err := range a.ReadArchive(t.Context(), 3, segments+1) {
			t.Fatalf("entry %d is there, %v", e.Number, err)
		}
	}
	runtime.ReadMemStats(&after)
	if bytes := (after.TotalAlloc - before.TotalAlloc) / times; bytes > most {
		t.Errorf("a look behind the end allocates %d bytes, want %d at most", bytes, most)
	}
	closed(t, a)
}
