package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/worker"
	"taskledger/store"
)

// sizing is a node of two slots that knows of two shards: one that another node serves, and one of its own.
func sizing(t *testing.T) (w *fixture, adjust func() time.Duration) {
	w = newFixture(t, 2, nil, &script{id: workBehavior})
	owners := w.cluster.view.Owners
	owners[0], owners[1] = store.Owner{Node: farID, Revision: 1}, store.Owner{Node: selfID, Revision: 1}
	w.sender.ServeHere(0, nil)
	return w, func() time.Duration { return w.offers.Adjust(w.session, time.Now()) }
}

// posted lets the letter of the offer that stands be written.
func (w *fixture) posted() { w.offers.Posted(w.offers.Last(0)) }

// needsSlot lets the shard of the node's own have a ready task.
func (w *fixture) needsSlot() { w.cluster.here = map[string]int{workBehavior: 1} }

func TestOffers_AnOwnerThatDoesNotAnswerIsOfferedNothingUntilItSpeaksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, adjust := sizing(t)
		wantFree := func(when string, n int) {
			t.Helper()
			adjust()
			if free := w.exec.Unreserved(); free != n {
				t.Errorf("%s: %d slots are free, want %d", when, free, n)
			}
		}
		w.cluster.hear(0, farID, 5)
		wantFree("with work there", 0)
		w.needsSlot()
		w.posted()
		wantFree("the offer has just been made", 0)
		time.Sleep(worker.IdleAfter + time.Millisecond)
		wantFree("the offer is being closed", 0)
		w.posted()
		time.Sleep(worker.AbandonAfter + time.Millisecond)
		wantFree("nobody has answered", 2)
		wantFree("what was told before counts no more", 2)
		time.Sleep(time.Millisecond)
		w.cluster.hear(0, farID, 5)
		wantFree("it has spoken", 1)
	})
}

func TestOffers_AreLookedAtAgainWhenTheyAreOldEnoughToBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, adjust := sizing(t)
		w.cluster.hear(0, farID, 5)
		adjust()
		w.posted()
		w.needsSlot()
		if again := adjust(); again != worker.IdleAfter {
			t.Errorf("looked at again after %s, want %s", again, worker.IdleAfter)
		}
	})
}

// Through the store an offer is on its way for as long as its letter takes to be written. Until then its owner
// cannot answer it.
func TestOffers_CountFromWhenTheirLetterIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, adjust := sizing(t)
		of := w.offers
		const took = 300 * time.Millisecond
		wantLast := func(when string, number uint64, free int) {
			t.Helper()
			adjust()
			if got := of.Made(0); got != number {
				t.Errorf("%s: the last offer is the %dth, want %d", when, got, number)
			}
			if got := w.exec.Unreserved(); got != free {
				t.Errorf("%s: %d slots are free, want %d", when, got, free)
			}
		}
		w.cluster.hear(0, farID, 5)
		adjust()
		w.needsSlot()
		time.Sleep(took)
		wantLast("its letter is being written", 1, 0)
		w.posted()
		if of.Usual() == 0 {
			t.Error("the time that a letter takes is not counted as a usual answer time")
		}
		of.SetUsual(time.Millisecond) // others answer fast
		time.Sleep(3*took - time.Millisecond)
		wantLast("it stands for less than three times as long as its letter took", 1, 0)
		time.Sleep(time.Millisecond)
		wantLast("it stands for long", 2, 0)
		time.Sleep(took)
		wantLast("the letter that closes it is being written", 2, 0)
		w.posted()
		time.Sleep(worker.ClosedOffer + time.Millisecond)
		wantLast("that has replaced it, and what it held is offered again but for what is missing here", 3, 1)
	})
}

// A letter may wait behind others that a hanging etcd does not take.
func TestOffers_HoldTheirSlotsForABoundedTimeWhileTheirLetterIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, adjust := sizing(t)
		w.cluster.hear(0, farID, 5)
		adjust()
		w.needsSlot()
		const onItsWay = 3*worker.UsualMost + sender.PostTimeout
		for _, wait := range []time.Duration{onItsWay + worker.IdleAfter, onItsWay + worker.AbandonAfter + time.Millisecond} {
			if adjust(); w.exec.Unreserved() != 0 {
				t.Fatalf("%d slots are free", w.exec.Unreserved())
			}
			time.Sleep(wait)
			adjust()
		}
		if free := w.exec.Unreserved(); free != 2 {
			t.Errorf("%d slots are free, want 2", free)
		}
	})
}

// An attempt that lends its slot keeps its place: an offer could bring nothing.
func TestOffers_NoneIsMadeForABehaviorWhosePlacesAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, adjust := sizing(t)
		x := w.exec
		for range 2 {
			if !w.take(workBehavior) {
				t.Fatal("no slot is free")
			}
		}
		x.Lock()
		x.Used--
		x.Lent++
		x.Unlock()
		w.cluster.hear(0, farID, 5)
		adjust()
		if n := w.offers.Made(0); n != 0 {
			t.Errorf("%d offers were made", n)
		}
	})
}
