package storetest

import (
	"context"
	"strings"

	"taskledger/store"
)

var appends = map[string]func(*world){
	"Append/SecondWriterOfANumberIsRefused": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		w.refuse(w.A, o, store.Head{}, "other", store.ErrAlien, "an entry is written once")
		w.append(w.A, o, one, "two")
		w.refuse(w.A, o, one, "other", store.ErrAlien, "an entry is written once")
		w.handOver(w.A, o, w.join(w.B))
		w.refuse(w.A, o, one, "other", store.ErrFenced, "what the next owner writes is its own")
		w.wantJournal(1, "one", "two")
	},
	// The owner lives, and the new one has written nothing: only the owner key shows it.
	"Append/AfterHandOverIsFenced": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		w.handOver(w.A, o, w.join(w.B))
		w.refuse(w.A, o, one, "two", store.ErrFenced, "a shard has one writer")
		w.wantJournal(1, "one")
	},
	// Nobody has taken the shard: only the node key shows it.
	"Append/AfterEndOfSessionIsFenced": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		w.leave(w.A, o.Session)
		w.refuse(w.A, o, one, "two", store.ErrFenced, "an ended session writes nothing")
		w.wantJournal(1, "one")
	},
	// The owner is the same and the trimmed number is free: only the entry before it shows it.
	"Append/LateDuplicateAfterTrimIsRefused": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		two := w.append(w.A, o, one, "two")
		three := w.append(w.A, o, two, "three")
		w.append(w.A, o, three, "four")
		w.trimTo(w.A, o, 3)
		w.refuse(w.A, o, one, "two", store.ErrMoved, "a trimmed entry never comes back")
		w.refuse(w.A, o, store.Head{Number: 1}, "two", store.ErrRefused, "revision 0 is absence, not an entry")
		failsWith(w, w.A.Read(w.ctx, 0, 2), store.ErrTrimmed)
		w.wantJournal(3, "three", "four")
	},
	// The first entry has none before it: only the snapshot, which precedes every trim, shows it.
	"Append/LateFirstEntryAfterTrimIsRefused": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		two := w.append(w.A, o, one, "two")
		w.append(w.A, o, two, "three")
		w.trimTo(w.A, o, 2)
		w.refuse(w.A, o, store.Head{}, "one", store.ErrMoved, "a trimmed entry never comes back")
		failsWith(w, w.A.Read(w.ctx, 0, 1), store.ErrTrimmed)
		w.wantJournal(2, "two", "three")
	},
	"Append/SameEntryAgainIsTheSameCommit": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		if again := w.append(w.A, o, store.Head{}, "one"); again != one {
			w.Errorf("append again: %+v, want %+v", again, one)
		}
		w.append(w.A, o, one, "two")
		if again := w.append(w.A, o, store.Head{}, "one"); again != one {
			w.Errorf("append again after the next: %+v, want %+v", again, one)
		}
		w.wantJournal(1, "one", "two")
	},
	"Append/AfterAnotherEntryThanTheLastIsRefused": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		w.refuse(w.A, o, store.Head{Number: 1, Revision: one.Revision - 1}, "two", store.ErrRefused, "the entry before must be the one that was folded")
		w.refuse(w.A, o, store.Head{Number: 2, Revision: one.Revision}, "three", store.ErrRefused, "entries have no gaps")
		w.refuse(w.A, o, store.Head{Number: 1}, "two", store.ErrRefused, "an entry has a revision")
		w.wantJournal(1, "one")
	},
	"Append/FencedAndTrimmedIsMoved": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		theirs := w.handOver(w.A, o, w.join(w.B))
		two := w.append(w.B, theirs, one, "two")
		three := w.append(w.B, theirs, two, "three")
		w.append(w.B, theirs, three, "four")
		w.trimTo(w.B, theirs, 3)
		w.refuse(w.A, o, one, "mine", store.ErrMoved, "of a trimmed entry nobody knows who wrote it")
	},
	"Append/FencedAfterASnapshotOfTheLastEntryIsFenced": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		w.snapshot(w.A, o, 1, "state")
		w.handOver(w.A, o, w.join(w.B))
		w.refuse(w.A, o, one, "two", store.ErrFenced, "no snapshot covers the entry, so it was never written")
	},
	"Append/TooLargeIsRefusedAndSpoilsNothing": func(w *world) {
		o := w.own(w.A)
		w.refuse(w.A, o, store.Head{}, strings.Repeat("x", 4<<20), store.ErrRefused, "an oversized entry is refused at once")
		w.append(w.A, o, store.Head{}, "one")
	},
	"Append/WithoutOwnershipIsFenced": func(w *world) {
		session := w.join(w.A)
		w.refuse(w.A, store.Ownership{Session: session}, store.Head{}, "one", store.ErrFenced, "revision 0 is no ownership")
		o := w.take(w.A, session, 0, store.Owner{})
		o.Session = store.Session{ID: "absent"}
		w.refuse(w.A, o, store.Head{}, "one", store.ErrFenced, "revision 0 is no session")
		w.wantJournal(1)
	},
	"Append/AfterEndOfContextFailsWithIt": func(w *world) {
		o := w.own(w.A)
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		ended := *w
		ended.ctx = ctx
		ended.refuse(w.A, o, store.Head{}, "one", context.Canceled, "an unknown outcome is none of the definite errors")
	},
}
