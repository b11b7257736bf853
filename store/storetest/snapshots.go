package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/store"
)

var snapshots = map[string]func(*world){
	"Pointer/OfAFreshShardIsZero": func(w *world) {
		if p := w.pointer(); p.Revision != 0 || len(p.Kept) != 0 {
			w.Errorf("pointer is %+v", p)
		}
	},
	"Publish/KeepsTheTwoNewest": func(w *world) {
		o := w.own(w.A)
		first := w.snapshot(w.A, o, 1, "first")
		second := w.snapshot(w.A, o, 2, "second", "", "half")
		w.wantParts(second.Kept[0], "second", "", "half")
		w.wantParts(second.Kept[1], "first")
		third := w.snapshot(w.A, o, 3, "third")
		w.wantParts(third.Kept[0], "third")
		w.wantParts(third.Kept[1], "second", "", "half")
		failsWith(w, w.B.Parts(w.ctx, 0, first.Kept[0]), store.ErrTrimmed)
		if !slices.Equal(third.Kept, []store.SnapshotInfo{third.Kept[0], second.Kept[0]}) || third.Revision <= second.Revision {
			w.Errorf("pointer is %+v after %+v", third, second)
		}
	},
	"Publish/RemovesAHalfWrittenSnapshot": func(w *world) {
		o := w.own(w.A)
		w.snapshot(w.A, o, 2, "old")
		half := w.put(w.A, o, 1, "before")
		between := w.put(w.A, o, 3, "between")
		after := w.put(w.A, o, 5, "after")
		w.snapshot(w.A, o, 4, "new")
		for _, s := range []store.SnapshotInfo{half, between, after} {
			failsWith(w, w.B.Parts(w.ctx, 0, s), store.ErrTrimmed)
		}
	},
	"Publish/RemovesWhatAnEarlierOwnerLeft": func(w *world) {
		theirs := w.own(w.A)
		w.snapshot(w.A, theirs, 2, "old")
		half := w.put(w.A, theirs, 3, "half", "half")
		same := w.put(w.A, theirs, 4, "half", "half")
		mine := w.handOver(w.A, theirs, w.join(w.B))
		p := w.snapshot(w.B, mine, 4, "new")
		w.wantParts(p.Kept[0], "new")
		w.wantParts(p.Kept[1], "old")
		for _, s := range []store.SnapshotInfo{half, same} {
			failsWith(w, w.B.Parts(w.ctx, 0, s), store.ErrTrimmed)
		}
	},
	"Publish/LeavesOtherShardsAlone": func(w *world) {
		session := w.join(w.A)
		zero, one := w.take(w.A, session, 0, store.Owner{}), w.take(w.A, session, 1, store.Owner{})
		p := w.snapshot(w.A, zero, 1, "zero")
		w.snapshot(w.A, one, 1, "one")
		w.snapshot(w.A, one, 2, "one")
		w.wantParts(p.Kept[0], "zero")
		w.wantPointer(p)
	},
	// The owner is the same: only the pointer shows it.
	"Publish/FromAStalePointerIsFenced": func(w *world) {
		o := w.own(w.A)
		first := w.snapshot(w.A, o, 1, "first")
		second := w.snapshot(w.A, o, 2, "second")
		w.wantNotPublished(o, first, w.put(w.A, o, 3, "third"), store.ErrFenced, "a pointer replaces the one that was seen")
		w.wantNotPublished(o, store.SnapshotPointer{}, w.put(w.A, o, 3, "third"), store.ErrFenced, "a pointer replaces the one that was seen")
		w.wantParts(second.Kept[0], "second")
		w.wantParts(second.Kept[1], "first")
	},
	// The new owner has taken no snapshot: only the owner key shows it.
	"Publish/AfterHandOverIsFenced": func(w *world) {
		o := w.own(w.A)
		seen := w.snapshot(w.A, o, 1, "first")
		next := w.put(w.A, o, 2, "second")
		w.handOver(w.A, o, w.join(w.B))
		w.wantNotPublished(o, seen, next, store.ErrFenced, "a replaced owner publishes nothing")
	},
	// Nobody has taken the shard: only the node key shows it.
	"Publish/AfterEndOfSessionIsFenced": func(w *world) {
		o := w.own(w.A)
		seen := w.snapshot(w.A, o, 1, "first")
		next := w.put(w.A, o, 2, "second")
		w.leave(w.A, o.Session)
		w.wantNotPublished(o, seen, next, store.ErrFenced, "an ended session publishes nothing")
	},
	"Publish/AgainIsTheSamePointer": func(w *world) {
		o := w.own(w.A)
		p := w.snapshot(w.A, o, 1, "first")
		if again, err := w.A.Publish(w.ctx, o, store.SnapshotPointer{}, p.Kept[0]); err != nil || again.Revision != p.Revision {
			w.Errorf("published again: %+v, %v, want %+v", again, err, p)
		}
		w.wantParts(p.Kept[0], "first")
	},
	// Another Publish has removed the parts since.
	"Publish/OfPartsThatAreGoneIsRefused": func(w *world) {
		o := w.own(w.A)
		w.put(w.A, o, 2, "one")
		seen := w.snapshot(w.A, o, 1, "first")
		if err := w.A.PutPart(w.ctx, o, 2, 1, []byte("two")); err != nil {
			w.Fatal(err)
		}
		s := store.SnapshotInfo{Entry: 2, Epoch: o.Revision, Parts: 2}
		w.wantNotPublished(o, seen, s, store.ErrRefused, "a snapshot is complete")
	},
	"Publish/OfAnythingButANewerSnapshotIsRefused": func(w *world) {
		o := w.own(w.A)
		seen := w.snapshot(w.A, o, 2, "state")
		s := w.put(w.A, o, 3, "state")
		for _, wrong := range []func(*store.SnapshotInfo){
			func(s *store.SnapshotInfo) { s.Entry = 0 },
			func(s *store.SnapshotInfo) { s.Entry = 1 },
			func(s *store.SnapshotInfo) { s.Entry = 2 },
			func(s *store.SnapshotInfo) { s.Epoch++ },
			func(s *store.SnapshotInfo) { s.Parts = 0 },
			func(s *store.SnapshotInfo) { s.Bytes = -1 },
		} {
			other := s
			wrong(&other)
			w.wantNotPublished(o, seen, other, store.ErrRefused, "a pointer names snapshots, the newest first")
		}
	},
	// The newest is damaged: the one before it stays, and the entry is covered anew.
	"Publish/CanLeaveOutADamagedSnapshot": func(w *world) {
		o := w.own(w.A)
		first := w.snapshot(w.A, o, 1, "first")
		seen := w.snapshot(w.A, o, 2, "damaged")
		o = w.handOver(w.A, o, w.join(w.B))
		damaged := seen.Kept[0]
		seen.Kept = seen.Kept[1:]
		p, err := w.B.Publish(w.ctx, o, seen, w.put(w.B, o, 2, "second"))
		if err != nil {
			w.Fatal(err)
		}
		w.wantPointer(p)
		w.wantParts(p.Kept[0], "second")
		w.wantParts(first.Kept[0], "first")
		failsWith(w, w.B.Parts(w.ctx, 0, damaged), store.ErrTrimmed)
	},
	"PutPart/OfTwoOwnersOfOneEntryAreSeparate": func(w *world) {
		o := w.own(w.A)
		w.put(w.A, o, 1, "theirs", "theirs")
		mine := w.handOver(w.A, o, w.join(w.B))
		p := w.snapshot(w.B, mine, 1, "mine")
		w.wantParts(p.Kept[0], "mine")
	},
	"PutPart/AgainIsDoneAndWithOtherBytesRefused": func(w *world) {
		o := w.own(w.A)
		s := w.put(w.A, o, 1, "state")
		w.put(w.A, o, 1, "state")
		w.wantNotPut(o, 1, 0, store.ErrRefused, "a part is written once")
		w.wantParts(s, "state")
	},
	"PutPart/AfterHandOverIsFenced": func(w *world) {
		o := w.own(w.A)
		w.handOver(w.A, o, w.join(w.B))
		w.wantNotPut(o, 1, 0, store.ErrFenced, "a replaced owner writes nothing")
	},
	"PutPart/AfterEndOfSessionIsFenced": func(w *world) {
		o := w.own(w.A)
		w.leave(w.A, o.Session)
		w.wantNotPut(o, 1, 0, store.ErrFenced, "an ended session writes nothing")
	},
	"PutPart/OutOfRangeIsRefused": func(w *world) {
		o := w.own(w.A)
		w.wantNotPut(o, 0, 0, store.ErrRefused, "the first entry is 1")
		w.wantNotPut(o, 1, -1, store.ErrRefused, "the first part is 0")
		w.wantNotPut(o, 1, 1<<40, store.ErrRefused, "a key has room for so many")
		w.wantNotPut(store.Ownership{Session: o.Session}, 1, 0, store.ErrFenced, "revision 0 is no ownership")
	},
	"Parts/AreYieldedInOrder": func(w *world) {
		o := w.own(w.A)
		for i, n := range []int{1, 15, 16, 17, 50} { // a page is less than 50
			parts := make([]string, n)
			for j := range parts {
				parts[j] = fmt.Sprint(i, " part ", j)
			}
			w.wantParts(w.snapshot(w.A, o, uint64(i+1), parts...).Kept[0], parts...)
		}
	},
	"Parts/MissingOneYieldsErrTrimmedAndEndsThem": func(w *world) {
		o := w.own(w.A)
		s := w.put(w.A, o, 1, slices.Repeat([]string{"part"}, 40)...)
		s.Parts = 41
		read := 0
		for part, err := range w.B.Parts(w.ctx, 0, s) {
			switch {
			case read < 40 && (err != nil || string(part) != "part"):
				w.Fatalf("part %d is %q, %v", read, part, err)
			case read == 40 && !errors.Is(err, store.ErrTrimmed):
				w.Fatalf("part 40 is %q, %v, want %v", part, err, store.ErrTrimmed)
			case read > 40:
				w.Fatal("parts go on after an error")
			}
			read++
		}
		if read != 41 {
			w.Errorf("parts ended after %d", read)
		}
	},
	"Parts/CanBeLeftEarly": func(w *world) {
		o := w.own(w.A)
		s := w.put(w.A, o, 1, slices.Repeat([]string{"part"}, 40)...)
		for _, err := range w.B.Parts(w.ctx, 0, s) {
			if err != nil {
				w.Fatal(err)
			}
			break
		}
	},
	"Parts/EndOfContextIsAnError": func(w *world) {
		o := w.own(w.A)
		s := w.put(w.A, o, 1, slices.Repeat([]string{"part"}, 40)...)
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		var last error
		for _, err := range w.B.Parts(ctx, 0, s) {
			cancel()
			last = err
		}
		if !errors.Is(last, context.Canceled) {
			w.Errorf("parts ended with %v, want %v", last, context.Canceled)
		}
	},
}

// put stores the parts of a snapshot and names it.
func (w *world) put(s store.Store, o store.Ownership, entry uint64, parts ...string) store.SnapshotInfo {
	w.Helper()
	snapshot, sums := store.SnapshotInfo{Entry: entry, Epoch: o.Revision, Parts: len(parts)}, sha256.New()
	for i, part := range parts {
		if err := s.PutPart(w.ctx, o, entry, i, []byte(part)); err != nil {
			w.Fatalf("put part %d of snapshot %d: %v", i, entry, err)
		}
		snapshot.Bytes += int64(len(part))
		sum := sha256.Sum256([]byte(part))
		sums.Write(sum[:])
	}
	snapshot.Hash = events.Hash(sums.Sum(nil))
	return snapshot
}

// snapshot takes one and publishes it as the newest.
func (w *world) snapshot(s store.Store, o store.Ownership, entry uint64, parts ...string) store.SnapshotPointer {
	w.Helper()
	seen, err := s.Pointer(w.ctx, o.Shard)
	if err != nil {
		w.Fatalf("read pointer: %v", err)
	}
	p, err := s.Publish(w.ctx, o, seen, w.put(s, o, entry, parts...))
	if err != nil {
		w.Fatalf("publish snapshot %d: %v", entry, err)
	}
	return p
}

// pointer reads that of shard 0.
func (w *world) pointer() store.SnapshotPointer {
	w.Helper()
	p, err := w.B.Pointer(w.ctx, 0)
	if err != nil {
		w.Fatalf("read pointer: %v", err)
	}
	return p
}

func (w *world) wantPointer(want store.SnapshotPointer) {
	w.Helper()
	if got := w.pointer(); got.Revision != want.Revision || !slices.Equal(got.Kept, want.Kept) {
		w.Errorf("pointer is %+v, want %+v", got, want)
	}
}

// wantParts asserts what a snapshot of shard 0 consists of.
func (w *world) wantParts(s store.SnapshotInfo, want ...string) {
	w.Helper()
	var got []string
	for part, err := range w.B.Parts(w.ctx, 0, s) {
		if err != nil {
			w.Fatalf("parts of snapshot %d: %v", s.Entry, err)
		}
		got = append(got, string(part))
	}
	if !slices.Equal(got, want) {
		w.Errorf("parts of snapshot %d are %q, want %q", s.Entry, got, want)
	}
}

// wantNotPublished asserts that publishing through A fails with want and changes nothing.
func (w *world) wantNotPublished(o store.Ownership, seen store.SnapshotPointer, s store.SnapshotInfo, want error, rule string) {
	w.Helper()
	before := w.pointer()
	if p, err := w.A.Publish(w.ctx, o, seen, s); !errors.Is(err, want) {
		w.Errorf("publish %+v: %+v, error %v, want %v: %s", s, p, err, want, rule)
	}
	w.wantPointer(before)
}

func (w *world) wantNotPut(o store.Ownership, entry uint64, part int, want error, rule string) {
	w.Helper()
	if err := w.A.PutPart(w.ctx, o, entry, part, []byte("other")); !errors.Is(err, want) {
		w.Errorf("put part %d of snapshot %d: %v, want %v: %s", part, entry, err, want, rule)
	}
}
