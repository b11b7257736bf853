package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"taskledger/events"
	"taskledger/projection/settings"
	"taskledger/store"
)

// sizing is a node of two slots, one shard of its own with a ready task, and one that another node serves.
func sizing(t *testing.T) (b *bench, adjust func() time.Duration) {
	b = newBench(t, 2, &script{id: benchBehavior})
	view := present(2, selfID, farID)
	view.Owners[0] = store.Owner{Node: farID, Revision: 1}
	b.m.view.Store(&view)
	b.sees(&view)
	b.m.sender.ServeHere(0, nil)
	return b, func() time.Duration { return b.m.offers.adjust(b.m, time.Now()) }
}

// posted lets the letter of the offer that stands be written.
func (b *bench) posted() { b.m.offers.Posted(b.m.offers.shards[0].last().Flight) }

// needsSlots lets a shard that the node serves have ready tasks.
func (b *bench) needsSlots(n int) {
	b.own.backlog.Store(&map[string]int{benchBehavior: n})
	b.m.place.owners[0] = b.own
}

func TestOffers_AnOwnerThatDoesNotAnswerIsOfferedNothingUntilItSpeaksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, adjust := sizing(t)
		wantFree := func(when string, n int) {
			t.Helper()
			adjust()
			if free := b.m.exec.Unreserved(); free != n {
				t.Errorf("%s: %d slots are free, want %d", when, free, n)
			}
		}
		b.m.load.hear(saying(farID, 1, benchStart, 0, 5))
		wantFree("with work there", 0)
		b.needsSlots(1)
		b.posted()
		wantFree("the offer has just been made", 0)
		time.Sleep(idleAfter + time.Millisecond)
		wantFree("the offer is being closed", 0)
		b.posted()
		time.Sleep(abandonAfter + time.Millisecond)
		wantFree("nobody has answered", 2)
		wantFree("what was told before counts no more", 2)
		time.Sleep(time.Millisecond)
		b.m.load.hear(saying(farID, 2, benchStart, 0, 5))
		wantFree("it has spoken", 1)
	})
}

func TestOffers_AreLookedAtAgainWhenTheyAreOldEnoughToBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, adjust := sizing(t)
		b.m.load.hear(saying(farID, 1, benchStart, 0, 5))
		adjust()
		b.posted()
		b.needsSlots(1)
		if again := adjust(); again != idleAfter {
			t.Errorf("looked at again after %s, want %s", again, idleAfter)
		}
	})
}

// Through the store an offer is on its way for as long as its letter takes to be written. Until then its owner cannot answer it.
func TestOffers_CountFromWhenTheirLetterIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, adjust := sizing(t)
		of := b.m.offers
		const took = 300 * time.Millisecond
		wantLast := func(when string, number uint64, free int) {
			t.Helper()
			adjust()
			if got := of.shards[0].number; got != number {
				t.Errorf("%s: the last offer is the %dth, want %d", when, got, number)
			}
			if got := b.m.exec.Unreserved(); got != free {
				t.Errorf("%s: %d slots are free, want %d", when, got, free)
			}
		}
		b.m.load.hear(saying(farID, 1, benchStart, 0, 5))
		adjust()
		b.needsSlots(1)
		time.Sleep(took)
		wantLast("its letter is being written", 1, 0)
		b.posted()
		if of.usual == 0 {
			t.Error("the time that a letter takes is not counted as a usual answer time")
		}
		of.usual = time.Millisecond // others answer fast
		time.Sleep(3*took - time.Millisecond)
		wantLast("it stands for less than three times as long as its letter took", 1, 0)
		time.Sleep(time.Millisecond)
		wantLast("it stands for long", 2, 0)
		time.Sleep(took)
		wantLast("the letter that closes it is being written", 2, 0)
		b.posted()
		time.Sleep(closedOffer + time.Millisecond)
		wantLast("that has replaced it, and what it held is offered again but for what is missing here", 3, 1)
	})
}

// A letter may wait behind others that a hanging etcd does not take.
func TestOffers_HoldTheirSlotsForABoundedTimeWhileTheirLetterIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, adjust := sizing(t)
		b.m.load.hear(saying(farID, 1, benchStart, 0, 5))
		adjust()
		b.needsSlots(1)
		for _, wait := range []time.Duration{3*usualMost + idleAfter, 3*usualMost + abandonAfter + time.Millisecond} {
			if adjust(); b.m.exec.Unreserved() != 0 {
				t.Fatalf("%d slots are free", b.m.exec.Unreserved())
			}
			time.Sleep(wait)
			adjust()
		}
		if free := b.m.exec.Unreserved(); free != 2 {
			t.Errorf("%d slots are free, want 2", free)
		}
	})
}

// What must not start needs no slot: free ones would be offered for it again and again.
func TestBacklog_LeavesOutWhatIsPaused(t *testing.T) {
	b := newBench(t, -1, &script{id: benchBehavior})
	for paused, ready := range map[string]int{"": 1, benchBehavior: 0, "another": 1} {
		var known settings.State
		if paused != "" {
			pause := &events.Event{Seq: 1, Body: &events.Paused{Behavior: paused}, Position: events.Position{Ref: 1}}
			if err := known.Fold(pause); err != nil {
				t.Fatal(err)
			}
		}
		b.m.settings.known.Store(&known)
		if b.own.state.Task("x") == nil {
			b.submit(Policy{})
		}
		b.own.publishView()
		if told := (*b.own.backlog.Load())[benchBehavior]; told != ready {
			t.Errorf("while %q is paused %d tasks are told of, want %d", paused, told, ready)
		}
	}
}

// An attempt that lends its slot keeps its place: an offer could bring nothing.
func TestOffers_NoneIsMadeForABehaviorWhosePlacesAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, adjust := sizing(t)
		x := b.m.exec
		for range 2 {
			if !x.take(benchBehavior) {
				t.Fatal("no slot is free")
			}
		}
		x.Lock()
		x.Used--
		x.Lent++
		x.Unlock()
		b.m.load.hear(saying(farID, 1, benchStart, 0, 5))
		adjust()
		if n := b.m.offers.shards[0].number; n != 0 {
			t.Errorf("%d offers were made", n)
		}
	})
}
