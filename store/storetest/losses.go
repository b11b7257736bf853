package storetest

import (
	"errors"

	"taskledger/events"
	"taskledger/store"
)

var losses = map[string]func(*world){
	"Loss/OfAFreshShardIsNone": func(w *world) { w.wantLoss(store.Loss{}) },
	"Loss/IsWhatWasGivenUpLast": func(w *world) {
		w.giveUp(store.Loss{Entry: 7, Hash: events.Hash{1}, Reason: "first"})
		second := w.giveUp(store.Loss{Entry: 9, Hash: events.Hash{2}, Reason: "second"})
		w.wantLoss(second)
		if other, err := w.B.Loss(w.ctx, 1); err != nil || other.Revision != 0 {
			w.Errorf("of another shard %+v, %v were given up", other, err)
		}
		if err := w.A.GiveUp(w.ctx, store.Loss{Shard: w.A.Cluster().Shards}); !errors.Is(err, store.ErrRefused) {
			w.Errorf("of a shard that does not exist: %v", err)
		}
	},
	"Forget/RemovesWhatItNames": func(w *world) {
		first := w.giveUp(store.Loss{Entry: 7})
		second := w.giveUp(store.Loss{Entry: 7})
		w.forget(first)
		w.wantLoss(second)
		w.forget(second)
		w.wantLoss(store.Loss{})
		w.forget(second)
		if err := w.A.Forget(w.ctx, store.Loss{}); !errors.Is(err, store.ErrRefused) {
			w.Errorf("without a revision: %v", err)
		}
	},
	"Recover/IsAnEntryThatRemovesTheLoss": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		l := w.giveUp(store.Loss{Entry: 1})
		two := w.recover(o, one, "two", l, store.SnapshotPointer{})
		w.wantLoss(store.Loss{})
		if again := w.recover(o, one, "two", l, store.SnapshotPointer{}); again != two {
			w.Errorf("again: %+v, want %+v", again, two)
		}
		w.append(w.A, o, two, "three")
		w.wantJournal(1, "one", "two", "three")
	},
	"Recover/OfTheFirstEntryIsOne": func(w *world) {
		o := w.own(w.A)
		w.recover(o, store.Head{}, "one", w.giveUp(store.Loss{}), store.SnapshotPointer{})
		w.wantLoss(store.Loss{})
		w.wantJournal(1, "one")
	},
	"Recover/OfAnotherLossIsRefused": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		first := w.giveUp(store.Loss{Entry: 1})
		w.giveUp(store.Loss{Entry: 1})
		w.refuseRecover(o, one, first, store.SnapshotPointer{}, store.ErrRefused)
		w.refuseRecover(o, one, store.Loss{Entry: 1}, store.SnapshotPointer{}, store.ErrRefused)
		w.wantJournal(1, "one")
	},
	"Recover/IsFenced": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		l := w.giveUp(store.Loss{Entry: 1})
		w.handOver(w.A, o, w.join(w.B))
		w.refuseRecover(o, one, l, store.SnapshotPointer{}, store.ErrFenced)
		w.wantLoss(l)
	},
	"Recover/LeavesTheSnapshotsThatAreNamed": func(w *world) {
		o := w.own(w.A)
		heads := w.fill(o, store.Head{}, 3)
		w.snapshot(w.A, o, 2, "older")
		p := w.snapshot(w.A, o, 9, "lost")
		l := w.giveUp(store.Loss{Entry: 3})
		other := p
		other.Revision--
		w.refuseRecover(o, heads[2], l, other, store.ErrRefused)
		p.Kept = p.Kept[1:]
		head := w.recover(o, heads[2], "four", l, p)
		if got := w.pointer(); got.Revision != head.Revision || len(got.Kept) != 1 || got.Kept[0] != p.Kept[0] {
			w.Errorf("pointer is %+v, want %+v", got, p)
		}
		l, p = w.giveUp(store.Loss{Entry: 4}), w.pointer()
		p.Kept = nil
		w.recover(o, head, "five", l, p)
		if got := w.pointer(); got.Revision != 0 {
			w.Errorf("pointer is %+v, want none", got)
		}
	},
}

func (w *world) giveUp(l store.Loss) store.Loss {
	w.Helper()
	err := w.A.GiveUp(w.ctx, l)
	if err == nil {
		l, err = w.B.Loss(w.ctx, l.Shard)
	}
	if err != nil || l.Revision == 0 {
		w.Fatalf("give up: %+v, %v", l, err)
	}
	return l
}

func (w *world) forget(l store.Loss) {
	w.Helper()
	if err := w.A.Forget(w.ctx, l); err != nil {
		w.Fatalf("forget: %v", err)
	}
}

func (w *world) wantLoss(want store.Loss) {
	w.Helper()
	if got, err := w.B.Loss(w.ctx, 0); got != want || err != nil {
		w.Errorf("given up is %+v, %v; want %+v", got, err, want)
	}
}

func (w *world) recover(o store.Ownership, after store.Head, entry string, l store.Loss, left store.SnapshotPointer) store.Head {
	w.Helper()
	rev, err := w.A.Recover(w.ctx, o, after, []byte(entry), l, left)
	if err != nil {
		w.Fatalf("recover: %v", err)
	}
	return store.Head{Number: after.Number + 1, Revision: rev}
}

func (w *world) refuseRecover(o store.Ownership, after store.Head, l store.Loss, left store.SnapshotPointer, want error) {
	w.Helper()
	if _, err := w.A.Recover(w.ctx, o, after, []byte("refused"), l, left); !errors.Is(err, want) {
		w.Errorf("recover: %v, want %v", err, want)
	}
}
