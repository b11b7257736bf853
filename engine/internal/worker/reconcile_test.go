package worker_test

import (
	"testing"

	"taskledger/engine/internal/command"
)

// nobody is for a worker that makes no attempts.
func nobody(int) bool { return false }

// An owner that is away for long must not find a heap of Reconciles.
func TestReconcile_WaitsForTheAnswerToTheLastOne(t *testing.T) {
	w := newFixture(t, 8, nil)
	of := w.offers
	busy := func(shard int) bool { return shard == 0 }
	if due := of.ReconcilesDue(busy); len(due) != 1 {
		t.Fatalf("reconciles due are %v, want one", due)
	}
	of.OwnerChanged(0)
	if due := of.ReconcilesDue(busy); len(due) != 0 {
		t.Errorf("reconciles due are %v before the last one is answered", due)
	}
	of.Reconciled(0, false)
	await(t, of.Calls(), "a wake-up for the one that was due meanwhile")
	if due := of.ReconcilesDue(nobody); len(due) != 1 {
		t.Errorf("reconciles due are %v, want one", due)
	}
}

func TestReconcile_OfASessionThatIsOverIsNotSent(t *testing.T) {
	w := newFixture(t, 1, nil)
	of := w.offers
	of.OwnerChanged(0)
	w.exec.GiveUp(w.session)
	of.SendReconciles(w.session, of.ReconcilesDue(nobody))
	due := of.ReconcilesDue(nobody)
	if calls := w.inbox.reports(); len(calls) != 0 || len(due) != 1 {
		t.Errorf("%d reconciles without the attempts that were forgotten; to be repeated: %v", len(calls), due)
	}
	w.begin(w.base, "later")
	of.SendReconciles(w.session, due)
	if calls := w.inbox.reports(); len(calls) != 1 {
		t.Errorf("%d reconciles of a living session, want 1", len(calls))
	}
}

// A node whose Reconcile was not answered sends another one.
func TestReconcile_ThatIsRefusedCountsAsStale(t *testing.T) {
	w := newFixture(t, -1, nil)
	of := w.offers
	of.OwnerChanged(0)
	due := of.ReconcilesDue(nobody)
	for _, code := range []command.AnswerCode{command.AnswerOverload, command.AnswerInvalid, command.AnswerStale} {
		of.SendReconciles(w.session, due)
		calls := w.inbox.reports()
		for _, d := range calls {
			d.reply(d.Batch, []command.Answer{{Code: code}}, true)
		}
		if due = of.ReconcilesDue(nobody); len(due) != 1 || len(calls) != 1 {
			t.Errorf("answer %d to %d reconciles: the reconcile counts as made", code, len(calls))
		}
	}
}
