package natsbus_test

import (
	"strings"
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// Pages that refresh themselves read the same entries again and again.
func TestArchive_EntryThatWasReadBeforeIsFoundWithoutBisection(t *testing.T) {
	t.Parallel()
	const segments, wanted = 100, 33
	way := &unreliable{address: strings.TrimPrefix(testcluster.StartJetStream(t).URL, "nats://")}
	a := archiveOf(t, natsbus.Config{InProcess: way}, natsbus.ArchiveConfig{})
	head := store.ArchiveHead{}
	for number := uint64(1); number <= segments; number++ {
		head = archive(t, a, 0, head, archivetest.Entries(t, 0, number, 1))
	}
	read := func() (fetched int32) {
		before := way.fetched.Load()
		for rec, err := range a.ReadArchive(t.Context(), 0, wanted) {
			if err != nil || rec.Number != wanted {
				t.Fatalf("entry %d, %v", rec.Number, err)
			}
			break
		}
		return way.fetched.Load() - before
	}
	first := read()
	for range 3 {
		if again := read(); again > 3 { // the last segment, the first one, and that of the entry
			t.Errorf("%d messages are fetched for an entry that was read before, %d at first", again, first)
		}
	}
	got, err := archivetest.Collect(a.ReadArchive(t.Context(), 0, wanted))
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, archivetest.Entries(t, 0, wanted, segments-wanted+1))
}
