package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"taskledger/events"
	"taskledger/projection/settings"
	"taskledger/store"
)

// sizing is a node of two slots that knows of two shards: one that another node serves, and one of its own.
func sizing(t *testing.T) (p *post, adjust func() time.Duration) {
	p = newPost(t, 2, nil, &script{id: workBehavior})
	view := present(2, selfID, farID)
	view.Owners[0], view.Owners[1] = store.Owner{Node: farID, Revision: 1}, store.Owner{Node: selfID, Revision: 1}
	p.sees(&view)
	p.sender.ServeHere(0, nil)
	return p, func() time.Duration { return p.offers.adjust(p.member, time.Now()) }
}

// posted lets the letter of the offer that stands be written.
func (p *post) posted() { p.offers.Posted(p.offers.shards[0].last().Flight) }

// needsSlot lets the shard of the node's own have a ready task.
func (p *post) needsSlot() { p.owning(1, owned{behavior: workBehavior}) }

func TestOffers_AnOwnerThatDoesNotAnswerIsOfferedNothingUntilItSpeaksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, adjust := sizing(t)
		wantFree := func(when string, n int) {
			t.Helper()
			adjust()
			if free := p.exec.Unreserved(); free != n {
				t.Errorf("%s: %d slots are free, want %d", when, free, n)
			}
		}
		p.load.hear(saying(farID, 1, p.now(), 0, 5))
		wantFree("with work there", 0)
		p.needsSlot()
		p.posted()
		wantFree("the offer has just been made", 0)
		time.Sleep(idleAfter + time.Millisecond)
		wantFree("the offer is being closed", 0)
		p.posted()
		time.Sleep(abandonAfter + time.Millisecond)
		wantFree("nobody has answered", 2)
		wantFree("what was told before counts no more", 2)
		time.Sleep(time.Millisecond)
		p.load.hear(saying(farID, 2, p.now(), 0, 5))
		wantFree("it has spoken", 1)
	})
}

func TestOffers_AreLookedAtAgainWhenTheyAreOldEnoughToBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, adjust := sizing(t)
		p.load.hear(saying(farID, 1, p.now(), 0, 5))
		adjust()
		p.posted()
		p.needsSlot()
		if again := adjust(); again != idleAfter {
			t.Errorf("looked at again after %s, want %s", again, idleAfter)
		}
	})
}

// Through the store an offer is on its way for as long as its letter takes to be written. Until then its owner cannot answer it.
func TestOffers_CountFromWhenTheirLetterIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, adjust := sizing(t)
		of := p.offers
		const took = 300 * time.Millisecond
		wantLast := func(when string, number uint64, free int) {
			t.Helper()
			adjust()
			if got := of.shards[0].number; got != number {
				t.Errorf("%s: the last offer is the %dth, want %d", when, got, number)
			}
			if got := p.exec.Unreserved(); got != free {
				t.Errorf("%s: %d slots are free, want %d", when, got, free)
			}
		}
		p.load.hear(saying(farID, 1, p.now(), 0, 5))
		adjust()
		p.needsSlot()
		time.Sleep(took)
		wantLast("its letter is being written", 1, 0)
		p.posted()
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
		p.posted()
		time.Sleep(closedOffer + time.Millisecond)
		wantLast("that has replaced it, and what it held is offered again but for what is missing here", 3, 1)
	})
}

// A letter may wait behind others that a hanging etcd does not take.
func TestOffers_HoldTheirSlotsForABoundedTimeWhileTheirLetterIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, adjust := sizing(t)
		p.load.hear(saying(farID, 1, p.now(), 0, 5))
		adjust()
		p.needsSlot()
		for _, wait := range []time.Duration{3*usualMost + idleAfter, 3*usualMost + abandonAfter + time.Millisecond} {
			if adjust(); p.exec.Unreserved() != 0 {
				t.Fatalf("%d slots are free", p.exec.Unreserved())
			}
			time.Sleep(wait)
			adjust()
		}
		if free := p.exec.Unreserved(); free != 2 {
			t.Errorf("%d slots are free, want 2", free)
		}
	})
}

// What must not start needs no slot: free ones would be offered for it again and again.
func TestBacklog_LeavesOutWhatIsPaused(t *testing.T) {
	p := newPost(t, -1, nil, &script{id: workBehavior})
	for paused, ready := range map[string]int{"": 1, workBehavior: 0, "another": 1} {
		var known settings.State
		if paused != "" {
			pause := &events.Event{Seq: 1, Body: &events.Paused{Behavior: paused}, Position: events.Position{Ref: 1}}
			if err := known.Fold(pause); err != nil {
				t.Fatal(err)
			}
		}
		p.settings.known.Store(&known)
		own := p.owning(0, owned{behavior: workBehavior})
		if told := own.Backlog()[workBehavior]; told != ready {
			t.Errorf("while %q is paused %d tasks are told of, want %d", paused, told, ready)
		}
	}
}

// An attempt that lends its slot keeps its place: an offer could bring nothing.
func TestOffers_NoneIsMadeForABehaviorWhosePlacesAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, adjust := sizing(t)
		x := p.exec
		for range 2 {
			if !x.take(workBehavior) {
				t.Fatal("no slot is free")
			}
		}
		x.Lock()
		x.Used--
		x.Lent++
		x.Unlock()
		p.load.hear(saying(farID, 1, p.now(), 0, 5))
		adjust()
		if n := p.offers.shards[0].number; n != 0 {
			t.Errorf("%d offers were made", n)
		}
	})
}
