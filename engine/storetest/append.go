package storetest

import (
	"context"
	"slices"
	"strings"

	"taskledger/engine"
)

var appends = map[string]func(*world){
	"Append/SecondWriterOfANumberIsRefused": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, engine.Head{}, "one")
		w.refuse(w.A, o, engine.Head{}, "other", engine.ErrAlien, "an entry is written once")
		w.append(w.A, o, one, "two")
		w.refuse(w.A, o, one, "other", engine.ErrAlien, "an entry is written once")
		w.handOver(w.A, o, w.join(w.B))
		w.refuse(w.A, o, one, "other", engine.ErrFenced, "what the next owner writes is its own")
		w.wantJournal(1, "one", "two")
	},
	// The owner lives, and the new one has written nothing: only the owner key can tell.
	"Append/AfterHandOverIsFenced": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, engine.Head{}, "one")
		w.handOver(w.A, o, w.join(w.B))
		w.refuse(w.A, o, one, "two", engine.ErrFenced, "a shard has one writer")
		w.wantJournal(1, "one")
	},
	// Nobody has taken the shard: only the node key can tell.
	"Append/AfterEndOfSessionIsFenced": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, engine.Head{}, "one")
		w.leave(w.A, o.Session)
		w.refuse(w.A, o, one, "two", engine.ErrFenced, "an ended session writes nothing")
		w.wantJournal(1, "one")
	},
	// The owner is the same and the trimmed number is free: only the entry before it can tell.
	"Append/LateDuplicateAfterTrimIsRefused": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, engine.Head{}, "one")
		two := w.append(w.A, o, one, "two")
		three := w.append(w.A, o, two, "three")
		w.append(w.A, o, three, "four")
		w.trimTo(w.A, o, 3)
		w.refuse(w.A, o, one, "two", engine.ErrMoved, "a trimmed entry never comes back")
		w.refuse(w.A, o, engine.Head{Number: 1}, "two", engine.ErrRefused, "revision 0 is absence, not an entry")
		failsWith(w, w.A.Read(w.ctx, 0, 2), engine.ErrTrimmed)
		w.wantJournal(3, "three", "four")
	},
	// The first entry has none before it: only the snapshot, which precedes every trim, can tell.
	"Append/LateFirstEntryAfterTrimIsRefused": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, engine.Head{}, "one")
		two := w.append(w.A, o, one, "two")
		w.append(w.A, o, two, "three")
		w.trimTo(w.A, o, 2)
		w.refuse(w.A, o, engine.Head{}, "one", engine.ErrMoved, "a trimmed entry never comes back")
		failsWith(w, w.A.Read(w.ctx, 0, 1), engine.ErrTrimmed)
		w.wantJournal(2, "two", "three")
	},
	"Append/SameEntryAgainIsTheSameCommit": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, engine.Head{}, "one")
		if again := w.append(w.A, o, engine.Head{}, "one"); again != one {
			w.Errorf("append again: %+v, want %+v", again, one)
		}
		w.append(w.A, o, one, "two")
		if again := w.append(w.A, o, engine.Head{}, "one"); again != one {
			w.Errorf("append again after the next: %+v, want %+v", again, one)
		}
		w.wantJournal(1, "one", "two")
	},
	"Append/AfterAnotherEntryThanTheLastIsRefused": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, engine.Head{}, "one")
		w.refuse(w.A, o, engine.Head{Number: 1, Revision: one.Revision - 1}, "two", engine.ErrRefused, "the entry before must be the one that was folded")
		w.refuse(w.A, o, engine.Head{Number: 2, Revision: one.Revision}, "three", engine.ErrRefused, "entries have no gaps")
		w.refuse(w.A, o, engine.Head{Number: 1}, "two", engine.ErrRefused, "an entry has a revision")
		w.wantJournal(1, "one")
	},
	"Append/FencedAndTrimmedIsMoved": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, engine.Head{}, "one")
		theirs := w.handOver(w.A, o, w.join(w.B))
		two := w.append(w.B, theirs, one, "two")
		three := w.append(w.B, theirs, two, "three")
		w.append(w.B, theirs, three, "four")
		w.trimTo(w.B, theirs, 3)
		w.refuse(w.A, o, one, "mine", engine.ErrMoved, "of a trimmed entry nobody knows who wrote it")
	},
	"Append/FencedAfterASnapshotOfTheLastEntryIsFenced": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, engine.Head{}, "one")
		w.snapshot(w.A, o, 1, "state")
		w.handOver(w.A, o, w.join(w.B))
		w.refuse(w.A, o, one, "two", engine.ErrFenced, "no snapshot covers the entry, so it was never written")
	},
	"Append/TooLargeIsRefusedAndSpoilsNothing": func(w *world) {
		o := w.own(w.A)
		w.refuse(w.A, o, engine.Head{}, strings.Repeat("x", 4<<20), engine.ErrRefused, "an oversized entry is refused at once")
		w.append(w.A, o, engine.Head{}, "one")
	},
	"Append/WithoutOwnershipIsFenced": func(w *world) {
		session := w.join(w.A)
		w.refuse(w.A, engine.Ownership{Session: session}, engine.Head{}, "one", engine.ErrFenced, "revision 0 is no ownership")
		o := w.take(w.A, session, 0, engine.Owner{})
		o.Session = engine.Session{ID: "absent"}
		w.refuse(w.A, o, engine.Head{}, "one", engine.ErrFenced, "revision 0 is no session")
		w.wantJournal(1)
	},
	"Append/AfterEndOfContextFailsWithIt": func(w *world) {
		o := w.own(w.A)
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		ended := *w
		ended.ctx = ctx
		ended.refuse(w.A, o, engine.Head{}, "one", context.Canceled, "an unknown outcome is none of the definite errors")
	},
}

func (w *world) wantJournal(from uint64, want ...string) {
	w.Helper()
	if got := w.journal(from); !slices.Equal(got, want) {
		w.Errorf("journal from entry %d is %q, want %q", from, got, want)
	}
}
