package memarchive_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/events"
	"taskledger/store"
	"taskledger/store/archivetest"
	"taskledger/store/memarchive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestArchive_KeepsTheContract(t *testing.T) {
	archivetest.Run(t, func(*testing.T) store.Archive { return memarchive.New() })
}

// filled returns an archive of two segments of a shard, entries 1 to 3 and 4 to 5, and these entries.
func filled(t *testing.T) (*memarchive.Archive, []store.Record) {
	t.Helper()
	a, all := memarchive.New(), archivetest.Entries(t, 0, 1, 5)
	var head store.ArchiveHead
	for _, entries := range [][]store.Record{all[:3], all[3:]} {
		var err error
		if head, err = a.Archive(t.Context(), 0, head, entries); err != nil {
			t.Fatal(err)
		}
	}
	return a, all
}

func TestRecords_AreAllThatIsArchivedOfAShard(t *testing.T) {
	a, all := filled(t)
	archivetest.Compare(t, a.Records(0), all)
	archivetest.Compare(t, a.Records(1), nil)
}

func TestAlter_LosesAndForgesWhatOneShardHas(t *testing.T) {
	a, all := filled(t)
	if _, err := a.Archive(t.Context(), 1, store.ArchiveHead{}, archivetest.Entries(t, 1, 1, 1)); err != nil {
		t.Fatal(err)
	}
	a.Alter(0, func(s []memarchive.Segment) []memarchive.Segment { return s[:1] })
	archivetest.Compare(t, a.Records(0), all[:3])
	a.Alter(0, func([]memarchive.Segment) []memarchive.Segment { return nil })
	if head, err := a.Head(t.Context(), 0); head != (store.ArchiveHead{}) || err != nil {
		t.Errorf("the head of what is lost is %+v, %v", head, err)
	}
	if got := a.Records(1); len(got) != 1 {
		t.Errorf("another shard has %d entries, want 1", len(got))
	}
}

func TestAlter_OfBytesIsSeenByNoEarlierReader(t *testing.T) {
	a, all := filled(t)
	reads := a.ReadArchive(t.Context(), 0, 1)
	a.Alter(0, func(s []memarchive.Segment) []memarchive.Segment {
		s[0].Entries[1].Data[9] ^= 1
		return s
	})
	got, err := archivetest.Collect(reads)
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, all)
	head := store.ArchiveHead{Entry: 3, Sequence: 1}
	if err := a.Confirm(t.Context(), 0, head, all[:3]); !errors.Is(err, store.ErrConflict) {
		t.Errorf("what was altered is confirmed: %v", err)
	}
}

func TestAlter_KeepsNobodyOutMeanwhile(t *testing.T) {
	a, all := filled(t)
	more := archivetest.Entries(t, 0, 6, 1)
	a.Alter(0, func(s []memarchive.Segment) []memarchive.Segment {
		archived := make(chan error, 1)
		go func() {
			_, err := a.Archive(t.Context(), 0, s[1].Head, more)
			archived <- err
		}()
		select {
		case err := <-archived:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the archive waits")
		}
		s[0].Entries = s[0].Entries[:2]
		return s
	})
	archivetest.Compare(t, a.Records(0), slices.Concat(all[:2], all[3:], more))
}

func TestReadArchive_OfAMissingEntryIsDamage(t *testing.T) {
	a, all := filled(t)
	a.Alter(0, func(s []memarchive.Segment) []memarchive.Segment {
		s[0].Entries = slices.Delete(s[0].Entries, 1, 2)
		return s
	})
	got, err := archivetest.Collect(a.ReadArchive(t.Context(), 0, 1))
	if !errors.Is(err, events.ErrDamaged) {
		t.Errorf("the second of %d entries is missing: %v, want %v", len(all), err, events.ErrDamaged)
	}
	archivetest.Compare(t, got, all[:1])
}

// Nobody knows whose events are in an entry that cannot be read.
func TestFindArchived_YieldsWhatCannotBeRead(t *testing.T) {
	a, all := filled(t)
	a.Alter(0, func(s []memarchive.Segment) []memarchive.Segment {
		s[0].Entries[1].Data = []byte("garbled")
		return s
	})
	got, err := archivetest.Collect(a.FindArchived(t.Context(), 0, "nobody", math.MaxUint64))
	if err != nil || len(got) != 3 || got[0].Number != all[2].Number {
		t.Errorf("found %d entries, %v, want the three beside the garbled one, newest first", len(got), err)
	}
}

func TestFindArchived_EndsWithItsContext(t *testing.T) {
	a, _ := filled(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range a.FindArchived(ctx, 0, archivetest.Task(2), math.MaxUint64) {
		if n++; err != nil {
			break
		}
		cancel()
	}
	if n != 2 {
		t.Errorf("%d turns, want a record and an error", n)
	}
}
