package filearchive_test

import (
	"bytes"
	"errors"
	"testing"

	"taskledger/events"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/internal/frame"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// holding makes an entry whose event has data of a caller.
func holding(t *testing.T, shard int, number uint64, data []byte) store.Record {
	t.Helper()
	var b events.Builder
	b.Reset(events.Entry{Shard: uint16(shard), Number: number, Epoch: 7, Owner: "owner", Time: 1_000_000})
	created := &events.Created{Behavior: "noop", Params: events.Bytes(data)}
	b.Add(events.Event{Task: archivetest.Task(number), Seq: 1, Body: created})
	sealed, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	return store.Record{Head: store.Head{Number: number, Revision: int64(number)}, Data: sealed}
}

// The data of an entry are a caller's: they may hold what looks like a record that tells what was synced. Power fails
// while it is archived, and some sectors of it are there.
func TestArchive_ACrashWhileDataThatHoldRecordsAreArchivedIsNoDamage(t *testing.T) {
	for _, durable := range []int64{1 << 62, 2000} { // behind all, and inside the segment
		header, err := frame.Append(nil, 0, frame.Frame{Number: 1, Durable: durable, Data: []byte{1}})
		if err != nil {
			t.Fatal(err)
		}
		forged := bytes.Repeat(header[:frame.HeaderBytes], 100)
		for kept := range 8 { // sectors from this one on are there
			d := faultdisk.New()
			a, err := filearchive.OpenLayer(d, "cluster")
			if err != nil {
				t.Fatal(err)
			}
			first := archivetest.Entries(t, 3, 1, 3)
			head, err := a.Archive(t.Context(), 3, store.ArchiveHead{}, first)
			if err != nil {
				t.Fatal(err)
			}
			d.KillAt(2) // in the sync
			some := []store.Record{holding(t, 3, 4, forged)}
			if _, err := a.Archive(t.Context(), 3, head, some); !errors.Is(err, faultdisk.ErrKilled) {
				t.Fatal(err)
			}
			_ = a.Close()
			sector := -1
			after := d.Crash(faultdisk.Fate{
				Names:  func(n int) int { return n },
				Length: func(_, written int) int { return written },
				Sector: func() bool { sector++; return sector >= kept },
			})
			if a, err = filearchive.OpenLayer(after, "cluster"); err != nil {
				t.Errorf("offset %d, the first %d sectors are missing: %v", durable, kept, err)
				continue
			}
			if kept == 0 {
				first = append(first, some...)
			}
			wantArchived(t, a, first)
			closed(t, a)
		}
	}
}
