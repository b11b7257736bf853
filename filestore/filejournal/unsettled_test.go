package filejournal_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
)

// answered makes an opportunistic journal whose process was killed: of its entries, which fill several sectors, the
// first ones alone were synced.
func answered(t *testing.T, all, synced uint64) (*faultdisk.Disk, filejournal.Options) {
	t.Helper()
	d := faultdisk.New()
	o := filejournal.Options{Durability: filejournal.Opportunistic, Lag: time.Hour, Boot: "first"}
	j := filled(t, d, o, 1, synced)
	if err := j.WriteSnapshot(journal.Key{}, journal.Snapshot{First: 1}); err != nil { // it syncs
		t.Fatal(err)
	}
	for number := synced + 1; number <= all; number++ {
		if err := j.Append(long(number)); err != nil {
			t.Fatal(err)
		}
	}
	d.KillAt(1)
	_ = j.Close()
	return d.Restart(), o
}

// left returns the number of the last entry of shard 0.
func left(t *testing.T, j *filejournal.Journal) (last uint64) {
	t.Helper()
	for e, err := range j.Read(0, 1) {
		if err != nil {
			t.Fatal(err)
		}
		last = e.Number
	}
	return last
}

// What a process has left unsynced is read by the next one, whose sync of it fails: some file systems read it no more
// then, though the machine goes on.
func TestOpen_WhoseSyncFailsHasTheNextOneTellOfALoss(t *testing.T) {
	const all = 12
	failures := 0
	for n := 1; n <= 12; n++ {
		d, o := answered(t, all, 4)
		d.ForgetAt(n)
		j, err := filejournal.OpenLayer(d, o)
		if err != nil {
			failures++
			if !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
		} else {
			d.KillAt(1)
			_ = j.Close()
		}
		j, err = filejournal.OpenLayer(d.Crash(fates(nil)["nothing"]), o)
		if err != nil {
			t.Fatal(err)
		}
		if is := left(t, j); is < all && j.Lost() == "" {
			t.Errorf("the sync of change %d has failed: of %d entries %d are left, and nothing tells", n, all, is)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if failures == 0 {
		t.Error("no sync has failed")
	}
}

// A file whose end is cut is cut durably, or the next run tells of a loss.
func TestOpen_WhoseSyncOfACutFailsHasTheNextOneTellOfALoss(t *testing.T) {
	d, o := answered(t, 12, 4)
	torn := d.Contents()
	torn["log-0000000000000001"] = torn["log-0000000000000001"][:len(torn["log-0000000000000001"])-10]
	d = faultdisk.Of(torn)
	d.ForgetAt(1)
	if _, err := filejournal.OpenLayer(d, o); !errors.Is(err, syscall.EIO) {
		t.Fatalf("the sync has failed, and it is opened with %v", err)
	}
	j, err := filejournal.OpenLayer(d.Restart(), o)
	if err != nil {
		t.Fatal(err)
	}
	if j.Lost() == "" {
		t.Error("the sync has failed, and nothing tells")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// The system goes on, and has not written what a process has left: a sector that was never written tells so, whatever
// stops the process that finds it.
func TestOpen_TellsOfALossWhereASectorWasNeverWrittenThoughTheMachineWentOn(t *testing.T) {
	unsynced := func(keep func(sector int) bool) faultdisk.Fate {
		at := -1
		return faultdisk.Fate{
			Names:  func(n int) int { return n },
			Length: func(_, written int) int { return written },
			Sector: func() bool { at++; return keep(at) },
		}
	}
	for name, keep := range map[string]func(sector int) bool{
		"none of them":       func(int) bool { return false },
		"all but the first":  func(at int) bool { return at > 0 },
		"all but the second": func(at int) bool { return at != 1 },
		"the first two":      func(at int) bool { return at < 2 },
	} {
		for killed := range 12 {
			d, o := answered(t, 12, 4)
			after := d.Crash(unsynced(keep))
			fate := fmt.Sprintf("sectors that are written: %s, killed at change %d", name, killed)
			read, err := filejournal.OpenLayerToRead(after)
			if err != nil {
				t.Fatalf("%s: %v", fate, err)
			}
			if !read.MayHaveLost() {
				t.Errorf("%s: who reads it learns nothing of a loss", fate)
			}
			_ = read.Close()
			if killed > 0 {
				after.KillAt(killed)
				if j, err := filejournal.OpenLayer(after, o); err == nil {
					_ = j.Close()
				}
				after = after.Restart()
			}
			j, err := filejournal.OpenLayer(after, o)
			if err != nil {
				t.Fatalf("%s: %v", fate, err)
			}
			if is := left(t, j); is >= 12 || j.Lost() == "" {
				t.Errorf("%s: %d entries are left, and lost is %q", fate, is, j.Lost())
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A process that is killed leaves any beginning of what it was writing, also one that ends with zeros of its own. That
// is no loss.
func TestOpen_TellsOfNoLossWhereAProcessWasKilledWhileItWrote(t *testing.T) {
	d, o := answered(t, 2, 1)
	e := journal.Entry{Number: 3, Revision: 3, Data: append(make([]byte, 900), 1)}
	for at := range e.Data {
		if at%100 == 99 {
			e.Data[at] = 0xff // so that it is written as it is
		}
	}
	j, err := filejournal.OpenLayer(d, o)
	if err != nil {
		t.Fatal(err)
	}
	before := len(d.Contents()["log-0000000000000001"])
	if err := j.Append(e); err != nil {
		t.Fatal(err)
	}
	whole := d.Contents()
	d.KillAt(1)
	_ = j.Close()
	for size := before; size < len(whole["log-0000000000000001"]); size++ {
		cut := faultdisk.Of(whole).Contents()
		cut["log-0000000000000001"] = cut["log-0000000000000001"][:size]
		j, err := filejournal.OpenLayer(faultdisk.Of(cut), o)
		if err != nil {
			t.Fatal(err)
		}
		if is := left(t, j); is != 2 || j.Lost() != "" {
			t.Errorf("cut at %d: %d entries are left, and lost is %q", size, is, j.Lost())
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A device goes away, so that neither what was answered nor a note of it can be written. When it is back in time for
// the note the next run tells; else another boot of the machine does, and what was synced is there whatever happens.
func TestOpportunistic_ADeviceThatGoesAwayLosesNothingThatWasSyncedAndIsToldOnceItCanBeNoted(t *testing.T) {
	for name, c := range map[string]struct {
		back bool // before the journal is closed
		boot string
		told bool
	}{
		"back in time":                       {true, "first", true},
		"gone until the machine is anew":     {false, "second", true},
		"gone while the machine goes on":     {false, "first", false}, // the documents name this exception
		"back in time, and the machine anew": {true, "second", true},
	} {
		d := faultdisk.New()
		o := filejournal.Options{Durability: filejournal.Opportunistic, Lag: time.Hour, Boot: "first"}
		j := filled(t, d, o, 1, 4)
		if err := j.WriteSnapshot(journal.Key{}, journal.Snapshot{First: 1}); err != nil { // it syncs
			t.Fatal(err)
		}
		for number := uint64(5); number <= 12; number++ {
			if err := j.Append(long(number)); err != nil {
				t.Fatal(err)
			}
		}
		d.FailAt(1, syscall.EIO)
		if err := j.WriteSnapshot(journal.Key{}, journal.Snapshot{First: 1}); !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: the sync says %v", name, err)
		}
		if err := j.Append(long(13)); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: after a sync that failed an entry says %v", name, err)
		}
		if c.back {
			d.FailAt(0, nil)
		}
		if err := j.Close(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: it is closed, and says %v", name, err)
		}
		o.Boot = c.boot
		j, err := filejournal.OpenLayer(d.Crash(fates(nil)["nothing"]), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if is := left(t, j); is != 4 || (j.Lost() != "") != c.told {
			t.Errorf("%s: %d entries are left of 4 that were synced, and lost is %q", name, is, j.Lost())
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
