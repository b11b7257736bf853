package storetest

import (
	"errors"

	"taskledger/store"
)

var ownerships = map[string]func(*world){
	"Take/NeverOwnedShardIsTakenOnce": func(w *world) {
		o := w.own(w.A)
		if owner := w.members().Owners[0]; owner != (store.Owner{Node: o.Session.ID, Revision: o.Revision}) {
			w.Errorf("owner is %+v, want %+v", owner, o)
		}
		w.wantNotTaken(w.join(w.B), store.Owner{}, "the owner key has changed")
	},
	"Take/OfALivingOwnerIsFenced": func(w *world) {
		w.own(w.A)
		w.wantNotTaken(w.join(w.B), w.members().Owners[0], "only a dead owner can be replaced")
	},
	"Take/OfADeadOwner": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		w.leave(w.A, o.Session)
		theirs := w.take(w.B, w.join(w.B), 0, w.members().Owners[0])
		w.append(w.B, theirs, one, "two")
		w.refuse(w.A, o, one, "mine", store.ErrFenced, "a replaced owner writes nothing")
	},
	// The owner that was seen is dead, and so is its successor: only the owner key's revision shows it.
	"Take/OnAnOldViewIsFenced": func(w *world) {
		o := w.own(w.A)
		w.leave(w.A, o.Session)
		seen := w.members().Owners[0]
		second := w.take(w.A, w.join(w.A), 0, seen)
		w.leave(w.A, second.Session)
		w.wantNotTaken(w.join(w.B), seen, "the owner key has changed")
	},
	"Take/ByAnEndedSessionIsFenced": func(w *world) {
		session := w.join(w.A)
		w.leave(w.A, session)
		w.wantNotTaken(session, store.Owner{}, "an ended session owns nothing")
		w.wantNotTaken(store.Session{ID: "absent"}, store.Owner{}, "lease 0 is no session")
	},
	"Take/AgainIsTheSameOwnership": func(w *world) {
		o := w.own(w.A)
		if again := w.take(w.A, o.Session, 0, store.Owner{}); again != o {
			w.Errorf("took %+v, want %+v", again, o)
		}
	},
	"Take/AgainAfterTheEndOfTheSessionIsFenced": func(w *world) {
		o := w.own(w.A)
		w.leave(w.A, o.Session)
		w.wantNotTaken(o.Session, store.Owner{}, "an ended session owns nothing")
	},
	"Take/OfAShardThatDoesNotExistIsRefused": func(w *world) {
		session := w.join(w.A)
		for _, shard := range []int{-1, w.A.Cluster().Shards} {
			if _, err := w.A.Take(w.ctx, session, shard, store.Owner{}); !errors.Is(err, store.ErrRefused) {
				w.Errorf("take shard %d: %v, want %v", shard, err, store.ErrRefused)
			}
		}
	},
	"HandOver/MakesTheTargetOwnerAtOnce": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		theirs := w.handOver(w.A, o, w.join(w.B))
		two := w.append(w.B, theirs, one, "two")
		mine := w.handOver(w.B, theirs, o.Session)
		w.refuse(w.B, theirs, two, "three", store.ErrFenced, "a shard has one writer")
		w.append(w.A, mine, two, "three")
		w.refuse(w.A, o, one, "late", store.ErrFenced, "an earlier ownership stays lost")
	},
	"HandOver/ToOneselfBeginsAnotherOwnership": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		again := w.handOver(w.A, o, o.Session)
		if again.Revision <= o.Revision {
			w.Errorf("revision %d after %d", again.Revision, o.Revision)
		}
		w.refuse(w.A, o, one, "two", store.ErrFenced, "an earlier ownership is over")
		w.append(w.A, again, one, "two")
	},
	"HandOver/ToAnAbsentNodeChangesNothing": func(w *world) {
		o := w.own(w.A)
		gone := w.join(w.B)
		w.leave(w.B, gone)
		for _, target := range []string{gone.ID, ""} {
			w.wantNotHandedOver(o, target, "the target has left")
		}
		w.append(w.A, o, store.Head{}, "one")
	},
	"HandOver/ByAFormerOwnerIsFenced": func(w *world) {
		o := w.own(w.A)
		theirs := w.handOver(w.A, o, w.join(w.B))
		third := w.join(w.B)
		w.wantNotHandedOver(o, third.ID, "the shard is another's")
		w.wantNotHandedOver(store.Ownership{Shard: 1}, third.ID, "revision 0 is no ownership")
		w.append(w.B, theirs, store.Head{}, "one")
	},
	"HandOver/AgainIsDone": func(w *world) {
		o := w.own(w.A)
		target := w.join(w.B)
		theirs := w.handOver(w.A, o, target)
		if again := w.handOver(w.A, o, target); again != theirs {
			w.Errorf("owner is %+v, want %+v", again, theirs)
		}
	},
	"Cluster/IsTheSameForAll": func(w *world) {
		a, b := w.A.Cluster(), w.B.Cluster()
		if a.ID == "" || a.ID != b.ID || a.Shards < 2 || a.Shards != b.Shards || len(a.Key) != 32 || string(a.Key) != string(b.Key) {
			w.Errorf("clusters are %+v and %+v", a, b)
		}
	},
}

func (w *world) wantNotTaken(session store.Session, seen store.Owner, rule string) {
	w.Helper()
	before := w.members().Owners[0]
	if o, err := w.B.Take(w.ctx, session, 0, seen); !errors.Is(err, store.ErrFenced) {
		w.Errorf("take: %+v, error %v, want %v: %s", o, err, store.ErrFenced, rule)
	}
	if after := w.members().Owners[0]; after != before {
		w.Errorf("owner is %+v, was %+v: %s", after, before, rule)
	}
}

func (w *world) wantNotHandedOver(o store.Ownership, target, rule string) {
	w.Helper()
	before := w.members().Owners[o.Shard]
	if err := w.A.HandOver(w.ctx, o, target); !errors.Is(err, store.ErrFenced) {
		w.Errorf("hand over: %v, want %v: %s", err, store.ErrFenced, rule)
	}
	if after := w.members().Owners[o.Shard]; after != before {
		w.Errorf("owner is %+v, was %+v: %s", after, before, rule)
	}
}
