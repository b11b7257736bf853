package storetest

import (
	"errors"
	"fmt"

	"taskledger/store"
)

var trims = map[string]func(*world){
	"First/IsThatOfTheFirstEntryHeld": func(w *world) {
		w.wantFirst(0)
		o := w.own(w.A)
		w.fill(o, store.Head{}, 12)
		w.wantFirst(1)
		w.snapshot(w.A, o, 10, "state")
		p := w.snapshot(w.A, o, 12, "state")
		for until := uint64(1); until <= 10; until++ {
			w.trim(o, p, 1, until)
			w.wantFirst(until)
		}
	},
	"Trim/RemovesTheEntriesBeforeAnother": func(w *world) {
		session := w.join(w.A)
		o, other := w.take(w.A, session, 0, store.Owner{}), w.take(w.A, session, 1, store.Owner{})
		w.fill(other, store.Head{}, 1)
		w.fill(o, store.Head{}, 5)
		p := w.trimTo(w.A, o, 4)
		w.wantJournal(4, "entry 4", "entry 5")
		failsWith(w, w.B.Read(w.ctx, 0, 3), store.ErrTrimmed)
		w.wantParts(p.Kept[0], "state 5")
		w.wantParts(p.Kept[1], "state 4")
		if r, err := w.B.Entry(w.ctx, 1, 1); err != nil || r.Number != 1 {
			w.Errorf("entry 1 of another shard is %+v, %v", r, err)
		}
	},
	"Trim/AgainAndOfNothingDoesNothing": func(w *world) {
		o := w.own(w.A)
		w.fill(o, store.Head{}, 5)
		p := w.trimTo(w.A, o, 3)
		w.trim(o, p, 1, 3)
		w.trim(o, p, 3, 3)
		w.trim(o, p, 4, 2)
		w.wantJournal(3, "entry 3", "entry 4", "entry 5")
	},
	"Trim/PastTheOlderSnapshotIsRefused": func(w *world) {
		o := w.own(w.A)
		w.fill(o, store.Head{}, 5)
		w.snapshot(w.A, o, 2, "state")
		p := w.snapshot(w.A, o, 4, "state")
		w.wantNotTrimmed(o, p, 1, 4, store.ErrRefused, "the newer snapshot may turn out damaged")
		w.wantNotTrimmed(o, p, 1, 3, store.ErrRefused, "the older snapshot's entry stays, and all that follow")
		w.trim(o, p, 1, 2)
	},
	"Trim/WithoutTwoSnapshotsIsRefused": func(w *world) {
		o := w.own(w.A)
		w.fill(o, store.Head{}, 3)
		w.wantNotTrimmed(o, store.SnapshotPointer{}, 1, 2, store.ErrRefused, "without a snapshot the journal is all there is")
		p := w.snapshot(w.A, o, 3, "state")
		w.wantNotTrimmed(o, p, 1, 2, store.ErrRefused, "one snapshot may turn out damaged")
	},
	"Trim/BehindTheFirstEntryIsRefused": func(w *world) {
		o := w.own(w.A)
		w.fill(o, store.Head{}, 5)
		w.snapshot(w.A, o, 4, "state")
		p := w.snapshot(w.A, o, 5, "state")
		w.wantNotTrimmed(o, p, 2, 4, store.ErrRefused, "a journal has no gaps")
		w.wantNotTrimmed(o, p, 0, 4, store.ErrRefused, "the first entry is 1")
	},
	// The owner is the same: only the pointer shows it.
	"Trim/WithAStalePointerIsFenced": func(w *world) {
		o := w.own(w.A)
		w.fill(o, store.Head{}, 5)
		w.snapshot(w.A, o, 3, "state")
		stale := w.snapshot(w.A, o, 4, "state")
		w.snapshot(w.A, o, 5, "state")
		w.wantNotTrimmed(o, stale, 1, 3, store.ErrFenced, "the snapshots that cover an entry are there when it is removed")
	},
	// The new owner has written nothing: only the owner key shows it.
	"Trim/AfterHandOverIsFenced": func(w *world) {
		o := w.own(w.A)
		w.fill(o, store.Head{}, 5)
		w.snapshot(w.A, o, 4, "state")
		p := w.snapshot(w.A, o, 5, "state")
		w.handOver(w.A, o, w.join(w.B))
		w.wantNotTrimmed(o, p, 1, 4, store.ErrFenced, "a replaced owner removes nothing")
		w.wantNotTrimmed(store.Ownership{Session: o.Session}, p, 1, 4, store.ErrFenced, "revision 0 is no ownership")
	},
	// Nobody has taken the shard: only the node key shows it.
	"Trim/AfterEndOfSessionIsFenced": func(w *world) {
		o := w.own(w.A)
		w.fill(o, store.Head{}, 5)
		w.snapshot(w.A, o, 4, "state")
		p := w.snapshot(w.A, o, 5, "state")
		w.leave(w.A, o.Session)
		w.wantNotTrimmed(o, p, 1, 4, store.ErrFenced, "an ended session removes nothing")
	},
	"Trim/ByTheNextOwnerGoesOn": func(w *world) {
		o := w.own(w.A)
		w.fill(o, store.Head{}, 8)
		w.snapshot(w.A, o, 6, "state")
		p := w.snapshot(w.A, o, 8, "state")
		w.trim(o, p, 1, 4)
		theirs := w.handOver(w.A, o, w.join(w.B))
		w.trim(theirs, w.pointer(), 4, 6)
		w.wantFirst(6)
	},
	"Read/AcrossATrimYieldsErrTrimmed": func(w *world) {
		o := w.own(w.A)
		w.fill(o, store.Head{}, 100)
		seen, last := 0, error(nil)
		for _, err := range w.B.Read(w.ctx, 0, 1) {
			if seen++; seen == 1 {
				w.trimTo(w.A, o, 99)
			}
			last = err
		}
		if !errors.Is(last, store.ErrTrimmed) {
			w.Errorf("%d entries, then %v, want %v", seen, last, store.ErrTrimmed)
		}
	},
}

// trimTo makes number the first entry of o's shard, covered by two snapshots; the next entry must be there.
func (w *world) trimTo(s store.Store, o store.Ownership, number uint64) store.SnapshotPointer {
	w.Helper()
	w.snapshot(s, o, number, stateAt(number))
	p := w.snapshot(s, o, number+1, stateAt(number+1))
	w.trim(o, p, 1, number)
	return p
}

func stateAt(number uint64) string { return fmt.Sprint("state ", number) }

func (w *world) trim(o store.Ownership, p store.SnapshotPointer, first, until uint64) {
	w.Helper()
	if err := w.A.Trim(w.ctx, o, p, first, until); err != nil {
		w.Fatalf("trim from %d to %d: %v", first, until, err)
	}
}

func (w *world) wantFirst(want uint64) {
	w.Helper()
	if first, err := w.B.First(w.ctx, 0); first != want || err != nil {
		w.Errorf("first entry is %d, %v, want %d", first, err, want)
	}
}

// wantNotTrimmed asserts that a trim of shard 0 fails with want and removes nothing.
func (w *world) wantNotTrimmed(o store.Ownership, p store.SnapshotPointer, first, until uint64, want error, rule string) {
	w.Helper()
	before := len(w.journal(1))
	if err := w.A.Trim(w.ctx, o, p, first, until); !errors.Is(err, want) {
		w.Errorf("trim from %d to %d: %v, want %v: %s", first, until, err, want, rule)
	}
	if after := len(w.journal(1)); after != before {
		w.Errorf("%d entries are left of %d: %s", after, before, rule)
	}
}
