package filestore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/events"
	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/store"
)

// writer appends sound entries to one shard, and remembers what it was answered.
type writer struct {
	t     *testing.T
	store *filestore.Store
	own   store.Ownership
	head  store.Head
	last  *events.Entry
	given int64 // the highest revision
	close func() error
}

// opportunistic opens the store on a disk after a start of the machine.
func opportunistic(d *faultdisk.Disk, boot string) (*filestore.Store, *filejournal.Journal, error) {
	return bounded(d, boot, time.Hour) // nothing is synced but what has to be
}

// bounded is opportunistic with a bound of what is lost; 0 = that of the directory.
func bounded(d *faultdisk.Disk, boot string, lag time.Duration) (*filestore.Store, *filejournal.Journal, error) {
	j, err := filejournal.OpenLayer(d, filejournal.Options{
		Durability: filejournal.Opportunistic,
		Lag:        lag,
		Boot:       boot,
	})
	if err != nil {
		return nil, nil, err
	}
	s, err := filestore.New(j, filestore.Config{Shards: 2})
	return s, j, err
}

// written is more than every program reads.
var written = store.Reads{Kind: events.KindDeleted + 1}

// own takes a shard and goes on behind its last entry.
func own(t *testing.T, s *filestore.Store, shard int) *writer {
	t.Helper()
	w := &writer{t: t, store: s, last: &events.Entry{Time: 1}}
	for r, err := range s.Read(t.Context(), shard, 1) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := events.Decode(r.Data)
		if err != nil {
			t.Fatal(err)
		}
		if e.Number != r.Number || e.Prev != w.last.Hash || int(e.Shard) != shard || e.Time < w.last.Time {
			t.Fatalf("entry %d does not follow the one before: %+v", r.Number, e)
		}
		w.head, w.last = r.Head, e
	}
	session, err := s.Join(t.Context(), store.NodeInfo{Name: "node", Reads: written}, time.Hour)
	if err == nil {
		w.own, err = s.Take(t.Context(), session, shard, store.Owner{})
	}
	if err != nil {
		t.Fatal(err)
	}
	w.given = w.own.Revision
	return w
}

// entry makes the next entry, with the events.
func (w *writer) entry(bodies ...events.Body) ([]byte, error) {
	var b events.Builder
	b.Reset(events.Entry{
		Shard:  uint16(w.own.Shard),
		Number: w.head.Number + 1,
		Epoch:  w.own.Revision,
		Owner:  w.own.Session.ID,
		Time:   w.last.Time,
		Prev:   w.last.Hash,
	})
	for _, body := range bodies {
		b.Add(events.Event{Task: events.TaskID(fmt.Sprint("task-", w.head.Number)), Seq: 1, Body: body})
	}
	return b.Seal()
}

func (w *writer) append() error { return w.appendIn(w.t.Context()) }

func (w *writer) appendIn(ctx context.Context) error {
	data, err := w.entry(&events.Created{Behavior: "noop"})
	if err != nil {
		return err
	}
	revision, err := w.store.Append(ctx, w.own, w.head, data)
	if err != nil {
		return err
	}
	w.answered(revision, data)
	return nil
}

func (w *writer) answered(revision int64, data []byte) {
	w.t.Helper()
	e, err := events.Decode(data)
	if err != nil {
		w.t.Fatal(err)
	}
	w.head, w.last = store.Head{Number: e.Number, Revision: revision}, e
	w.given = max(w.given, revision)
}

func (w *writer) fill(n int) {
	w.t.Helper()
	for range n {
		if err := w.append(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// nothing has a loss of power take all that was not synced.
func nothing() faultdisk.Fate {
	return faultdisk.Fate{
		Names:  func(int) int { return 0 },
		Length: func(synced, _ int) int { return synced },
		Sector: func() bool { return false },
	}
}

// build makes a store of which 30 entries of shard 0 were answered, of which the last 20 were not synced.
func build(t *testing.T) (*writer, *faultdisk.Disk) {
	t.Helper()
	d := faultdisk.New()
	s, j, err := opportunistic(d, "first")
	if err != nil {
		t.Fatal(err)
	}
	w := own(t, s, 0)
	w.close = j.Close
	w.fill(10)
	if err := s.Raise(t.Context(), written); err != nil { // it syncs
		t.Fatal(err)
	}
	w.fill(20)
	return w, d
}

func loss(t *testing.T, s *filestore.Store, shard int) store.Loss {
	t.Helper()
	l, err := s.Loss(t.Context(), shard)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLost_NoNumberAndNoRevisionThatWasAnsweredIsUsedAgain(t *testing.T) {
	before, d := build(t)
	s, _, err := opportunistic(d.Crash(nothing()), "second")
	if err != nil {
		t.Fatal(err)
	}
	l := loss(t, s, 0)
	after := own(t, s, 0)
	if after.head.Number < before.head.Number || after.head.Number != l.Entry || after.last.Hash != l.Hash {
		t.Errorf("the journal ends with entry %d, and the loss names %+v; %d entries were answered",
			after.head.Number, l, before.head.Number)
	}
	if !strings.Contains(l.Reason, "entries 11 to ") {
		t.Errorf("the loss says %q", l.Reason)
	}
	if err := events.CheckReason(l.Reason); err != nil {
		t.Error(err)
	}
	if after.given <= before.given {
		t.Errorf("revision %d is used again, %d was given before", after.given, before.given)
	}
	if other := loss(t, s, 1); other.Revision != 0 {
		t.Errorf("shard 1, which has no entries, has lost %+v", other)
	}
	data, err := after.entry(&events.Created{Behavior: "noop"}) // the store does not look at what an entry says
	if err != nil {
		t.Fatal(err)
	}
	revision, err := s.Recover(t.Context(), after.own, after.head, data, l, store.SnapshotPointer{})
	if err != nil {
		t.Fatal(err)
	}
	after.answered(revision, data)
	after.fill(3)
	if l := loss(t, s, 0); l.Revision != 0 {
		t.Errorf("the loss is still there: %+v", l)
	}
}

func TestLost_NothingWhereTheMachineWentOn(t *testing.T) {
	before, d := build(t)
	s, j, err := opportunistic(d.Restart(), "first")
	if err != nil {
		t.Fatal(err)
	}
	after := own(t, s, 0)
	if l := loss(t, s, 0); l.Revision != 0 || after.head != before.head {
		t.Errorf("the journal ends with %+v, want %+v; lost is %+v", after.head, before.head, l)
	}
	if after.given <= before.given {
		t.Errorf("revision %d is used again, %d was given before", after.given, before.given)
	}
	after.fill(3)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// Some file systems read no more what a sync has failed to write, and others read it as long as the machine goes on.
func TestLost_IsToldAfterASyncThatFailedThoughTheMachineWentOn(t *testing.T) {
	for name, left := range map[string]func(*faultdisk.Disk) *faultdisk.Disk{
		"nothing of it is read": func(d *faultdisk.Disk) *faultdisk.Disk { return d.Crash(nothing()) },
		"all of it is read":     (*faultdisk.Disk).Restart,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := faultdisk.New()
			s, j, err := bounded(d, "boot", 0)
			if err != nil {
				t.Fatal(err)
			}
			before := own(t, s, 0)
			before.fill(10)
			time.Sleep(time.Second)
			synctest.Wait()
			before.fill(20)
			d.ForgetAt(1)
			time.Sleep(time.Second)
			synctest.Wait()
			if err := s.Renew(t.Context(), before.own.Session); !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: renew: %v", name, err)
			}
			if err := j.Close(); !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: it is closed, and says %v", name, err)
			}
			if s, j, err = bounded(left(d), "boot", 0); err != nil {
				t.Fatal(err)
			}
			l := loss(t, s, 0)
			after := own(t, s, 0)
			if after.head.Number < before.head.Number || after.head.Number != l.Entry || !strings.Contains(l.Reason, "sync") {
				t.Errorf("%s: the journal ends with entry %d, and the loss names %+v; %d entries were answered",
					name, after.head.Number, l, before.head.Number)
			}
			if err := errors.Join(events.CheckReason(l.Reason), j.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLost_NothingAfterACleanEnd(t *testing.T) {
	before, d := build(t)
	if err := before.close(); err != nil {
		t.Fatal(err)
	}
	s, _, err := opportunistic(d.Crash(nothing()), "second")
	if err != nil {
		t.Fatal(err)
	}
	if l, after := loss(t, s, 0), own(t, s, 0); l.Revision != 0 || after.head != before.head {
		t.Errorf("the journal ends with %+v, want %+v; lost is %+v", after.head, before.head, l)
	}
}

// The loss is told however often the machine stops before it is noted, and once.
func TestLost_IsGivenUpWhateverStopsItMeanwhile(t *testing.T) {
	for _, boot := range []string{"second", "third"} {
		for n, through := 1, false; !through; n++ {
			if n > 15 && n < 1000 {
				n += 200 // in the midst of 1,014 entries without events
			}
			before, d := build(t)
			d = d.Crash(nothing())
			d.KillAt(n)
			_, _, err := opportunistic(d, "second")
			through = err == nil
			after := d.Restart()
			if boot == "third" {
				after = after.Crash(nothing())
			}
			s, _, err := opportunistic(after, boot)
			if err != nil {
				t.Fatalf("killed at change %d: %v", n, err)
			}
			l, w := loss(t, s, 0), own(t, s, 0)
			if l.Revision == 0 || w.head.Number < before.head.Number || l.Entry != w.head.Number || l.Hash != w.last.Hash {
				t.Fatalf("killed at change %d, started as %s: lost is %+v, and the journal ends with %+v", n, boot, l, w.head)
			}
			w.fill(1)
		}
	}
}

// An owner records a loss in an entry that another crash takes, with all numbers that were reserved for it: what the
// loss said is said of all that is lost then.
func TestLost_IsToldThoughTheMachineStopsAgainWhileItIsRecorded(t *testing.T) {
	for name, of := range map[string]struct {
		given string // the loss that is recorded; "" = that of a crash of the machine
		says  string
	}{
		"OfACrash":       {"", ": entries 11 to "},
		"OfARestore":     {"the store was restored: the journal ends", "the store was restored: the journal ends; "},
		"OfALongReason":  {strings.Repeat("ä", events.MaxNameBytes/2), "ää; "},
		"OfOtherEntries": {"lost: entries 3 to 7", "lost: entries 3 to 7; "},
	} {
		t.Run(name, func(t *testing.T) {
			taken := 0
			for n, through := 1, false; !through; n++ {
				_, d := build(t)
				d = d.Crash(nothing())
				var before store.Loss
				for boot := range 3 { // the last one looks what the others have left
					s, _, err := opportunistic(d, fmt.Sprint("boot-", boot))
					if err != nil {
						t.Fatal(err)
					}
					w := own(t, s, 0)
					l := loss(t, s, 0)
					if boot == 0 && of.given != "" {
						l = store.Loss{Entry: w.head.Number, Hash: w.last.Hash, Reason: of.given}
						if err := s.GiveUp(t.Context(), l); err != nil {
							t.Fatal(err)
						}
						l = loss(t, s, 0)
					}
					if boot > 0 {
						if through = recorded(t, s); through {
							break
						}
						says, ends := of.says, fmt.Sprintf(" to %d", w.head.Number)
						if w.head.Number == before.Entry { // no number was reserved for the entry
							says, ends = before.Reason, before.Reason
						} else {
							taken++
						}
						if !strings.Contains(l.Reason, says) || !strings.HasSuffix(l.Reason, ends) || l.Entry != w.head.Number {
							t.Fatalf("killed at change %d, %d times, the loss is %+v, and the journal ends with entry %d",
								n, boot, l, w.head.Number)
						}
					}
					before = l
					if err := events.CheckReason(l.Reason); err != nil {
						t.Fatal(err)
					}
					data, err := w.entry(&events.Created{Behavior: "noop"})
					if err != nil {
						t.Fatal(err)
					}
					d.KillAt(n)
					_, _ = s.Recover(t.Context(), w.own, w.head, data, l, store.SnapshotPointer{})
					d = d.Crash(nothing())
				}
			}
			if taken < 2 {
				t.Errorf("the entry that tells of the loss was taken %d times", taken)
			}
		})
	}
}

// recorded reports whether an entry behind those that were written first has an event: the one that Recover appends.
func recorded(t *testing.T, s *filestore.Store) bool {
	t.Helper()
	for r, err := range s.Read(t.Context(), 0, 31) {
		if err != nil {
			t.Fatal(err)
		}
		if e, err := events.Decode(r.Data); err == nil && len(e.Events) > 0 {
			return true
		}
	}
	return false
}

// Reserving takes a sync for many numbers, and no entry has one above what is reserved.
func TestLost_ManyEntriesAreReservedForTogether(t *testing.T) {
	d := faultdisk.New()
	s, _, err := opportunistic(d, "first")
	if err != nil {
		t.Fatal(err)
	}
	w := own(t, s, 0)
	w.fill(1)
	changes := d.Changes()
	w.fill(1000)
	if n := d.Changes() - changes; n > 1000 {
		t.Errorf("1,000 entries took %d changes of the disk, want a write each", n)
	}
	w.fill(100)
	s, _, err = opportunistic(d.Crash(nothing()), "second")
	if err != nil {
		t.Fatal(err)
	}
	if after := own(t, s, 0); after.head.Number < w.head.Number {
		t.Errorf("the journal ends with entry %d, and %d were answered", after.head.Number, w.head.Number)
	}
}

// An entry comes every tenth of a second. Whatever a crash of the machine takes that was not synced, those that were
// answered before the bound are there, and the loss names the others.
func TestLost_IsNoMoreThanTheBoundSays(t *testing.T) {
	for _, bound := range []time.Duration{0, 300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			const every, seconds = 100 * time.Millisecond, 4
			d := faultdisk.New()
			j, err := filejournal.OpenLayer(d, filejournal.Options{
				Durability: filejournal.Opportunistic,
				Lag:        bound,
				Boot:       "first",
			})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			s, err := filestore.New(j, filestore.Config{Shards: 2})
			if err != nil {
				t.Fatal(err)
			}
			w, most := own(t, s, 0), int(cmp.Or(bound, time.Second)/every)
			lost := 0
			for n := 1; n <= seconds*int(time.Second/every); n++ {
				w.fill(1)
				after, _, err := bounded(d.Crash(nothing()), "second", 0)
				if err != nil {
					t.Fatal(err)
				}
				left := 0
				for r, err := range after.Read(t.Context(), 0, 1) {
					if err != nil {
						t.Fatal(err)
					}
					if e, err := events.Decode(r.Data); err == nil && len(e.Events) > 0 {
						left++
					}
				}
				lost = max(lost, n-left)
				if n-left > most {
					t.Fatalf("%d of %d entries are lost, more than the last %d", n-left, n, most)
				}
				if l := loss(t, after, 0); n-left > 0 && !strings.Contains(l.Reason, fmt.Sprintf("entries %d to ", left+1)) {
					t.Fatalf("%d of %d entries are left, and the loss says %q", left, n, l.Reason)
				}
				time.Sleep(every)
				synctest.Wait()
			}
			if lost == 0 {
				t.Error("nothing could be lost: each entry was synced at once")
			}
		})
	}
}
