package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/worker"
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/task"
)

// assigning is the answer to an offer that assigns so many attempts of an entry.
func assigning(entry uint64, n int) []command.Answer {
	var w wire.Writer
	w.Array(n)
	for i := range n {
		a := command.Assignment{
			AttemptName: command.AttemptName{Task: "x", Started: events.RefOf(entry, i)},
			Behavior:    workBehavior,
			Number:      1,
		}
		a.Encode(&w)
	}
	return []command.Answer{{Data: w.B}}
}

// offer reserves slots, offers them to the owner of shard 0 and returns the number of the offer.
func (w *fixture) offer(slots int) uint64 {
	w.Helper()
	n, detail := w.exec.Reserve(slots, nil)
	if n != slots {
		w.Fatalf("%d slots are free, want %d", n, slots)
	}
	return w.offers.Send(w.session, 0, n, detail)
}

// An answer comes while the roll is called. Were the offer counted as answered and its attempts not yet known, the
// owner would release attempts that are about to begin.
func TestReconcile_NeverMissesTheAttemptsOfAnAnsweredOffer(t *testing.T) {
	const slots, rounds = 256, 100
	w := newFixture(t, slots, nil, &script{workBehavior, func(ctx context.Context, _ task.Attempt) task.Outcome {
		<-ctx.Done()
		return task.Outcome{Err: &events.Error{Code: events.CodeFailed}}
	}})
	of, x := w.offers, w.exec
	freed := make(chan struct{}, slots)
	x.Freed = func() { freed <- struct{}{} }
	for range rounds {
		number := w.offer(slots)
		var calls sync.WaitGroup
		calls.Go(func() {
			for of.ReconcilesDue(func(shard int) bool { return shard == 0 })[0] < number {
				of.Reconciled(0, false)
			}
			if known := len(x.Names(w.session, 0)); known != slots {
				t.Errorf("offer %d is called answered, and %d of its %d attempts are known", number, known, slots)
			}
		})
		of.Answered(0, number, assigning(number, slots))
		calls.Wait()
		x.CancelAll(w.session, worker.ErrFenced)
		for range slots {
			await(t, freed, "a slot")
		}
	}
}

// The answer to an offer got lost, and a later offer has closed it. The Reconcile that tells the owner so must not
// wait for something else to happen in the shard.
func TestOffer_GivenUpIsFollowedByAReconciliation(t *testing.T) {
	w := newFixture(t, 8, nil)
	of := w.offers
	of.Send(w.session, 0, 0, nil)
	of.Answered(0, of.Send(w.session, 0, 0, nil), nil)
	if due := of.ReconcilesDue(nobody); len(due) != 0 {
		t.Fatalf("reconciles are due before the offer is given up: %v", due)
	}
	of.Adjust(w.session, time.Now().Add(2*worker.ClosedOffer))
	if due := of.ReconcilesDue(nobody); due[0] != 1 {
		t.Errorf("reconciles due are %v, want one of shard 0 that counts offer 1 as answered", due)
	}
	await(t, of.Calls(), "a wake-up")
}

// An answer may come when the session of its offer is over and another one has begun: nothing of it starts, and the
// slots are free again.
func TestOffer_AnsweredAfterItsSessionStartsNothing(t *testing.T) {
	w := newFixture(t, 1, nil, &script{workBehavior, func(context.Context, task.Attempt) task.Outcome {
		t.Error("an attempt has started")
		return task.Outcome{}
	}})
	number, over := w.offer(1), w.session
	w.begin(w.base, "later")
	w.offers.Answered(0, number, assigning(1, 1))
	for _, s := range []*worker.Session{over, w.session} {
		if known := w.exec.Names(s, 0); len(known) != 0 {
			t.Errorf("attempts of session %s: %v", s.ID, known)
		}
	}
	if free := w.exec.Unreserved(); free != 1 {
		t.Errorf("%d slots are free, want 1", free)
	}
}
