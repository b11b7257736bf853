package filejournal_test

import (
	"bytes"
	"errors"
	"testing"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/internal/frame"
	"taskledger/filestore/journal"
)

// forged returns the header of a record that tells of an offset that was synced.
func forged(t *testing.T, durable int64) []byte {
	t.Helper()
	record, err := frame.Append(nil, 0, frame.Frame{Number: 1, Durable: durable, Data: []byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	return record[:frame.HeaderBytes]
}

// The data of an entry are a caller's: a copy of a journal, or headers that are made for it. Power fails while it is
// written, and some sectors of it are there.
func TestCrash_OfTheMachineWhileDataThatHoldRecordsAreWrittenIsNoDamage(t *testing.T) {
	o := filejournal.Options{Boot: "first"}
	other := faultdisk.New()
	j := filled(t, other, o, 1, 40)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"a copy of a journal":            other.Contents()["log-0000000000000001"],
		"headers of an offset far away":  bytes.Repeat(forged(t, 1<<62), 100),
		"headers of one behind a record": bytes.Repeat(forged(t, 1500), 100),
	} {
		for kept := range 8 { // sectors from this one on are there
			d := faultdisk.New()
			j := filled(t, d, o, 1, 2)
			d.KillAt(2) // in the sync
			if err := j.Append(journal.Entry{Number: 3, Revision: 3, Data: data}); !errors.Is(err, faultdisk.ErrKilled) {
				t.Fatal(err)
			}
			_ = j.Close()
			sector := -1
			after := d.Crash(faultdisk.Fate{
				Names:  func(n int) int { return n },
				Length: func(_, written int) int { return written },
				Sector: func() bool { sector++; return sector >= kept },
			})
			j, err := filejournal.OpenLayer(after, filejournal.Options{Boot: "second"})
			if err != nil {
				t.Errorf("%s, the first %d sectors are missing: %v", name, kept, err)
				continue
			}
			if is := left(t, j); is < 2 || is > 3 || is == 3 != (kept == 0) {
				t.Errorf("%s, the first %d sectors are missing: %d entries are left", name, kept, is)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
