package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/wire"
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
func (p *post) offer(slots int) uint64 {
	p.Helper()
	n, detail := p.exec.Reserve(slots, nil)
	if n != slots {
		p.Fatalf("%d slots are free, want %d", n, slots)
	}
	of := p.offers
	of.lock()
	defer of.unlock()
	of.send(p.member, 0, n, detail)
	return of.shards[0].number
}

// An answer comes while the roll is called. Were the offer counted as answered and its attempts not yet known, the owner
// would release attempts that are about to begin.
func TestRollCall_NeverMissesTheAttemptsOfAnAnsweredOffer(t *testing.T) {
	const slots, rounds = 256, 100
	p := newPost(t, slots, nil, &script{workBehavior, func(ctx context.Context, _ Attempt) Outcome {
		<-ctx.Done()
		return Outcome{Err: &events.Error{Code: events.CodeFailed}}
	}})
	of, x := p.offers, p.exec
	freed := make(chan struct{}, slots)
	x.Freed = func() { freed <- struct{}{} }
	for range rounds {
		number := p.offer(slots)
		var calls sync.WaitGroup
		calls.Go(func() {
			for of.rollCallsDue(func(shard int) bool { return shard == 0 })[0] < number {
				of.rollCalled(0, false)
			}
			if known := len(x.names(p.member, 0)); known != slots {
				t.Errorf("offer %d is called answered, and %d of its %d attempts are known", number, known, slots)
			}
		})
		of.Answered(0, number, assigning(number, slots))
		calls.Wait()
		x.cancelAll(p.member, errFenced)
		for range slots {
			await(t, freed, "a slot")
		}
	}
}

// The answer to an offer got lost, and a later offer has closed it. The roll call that tells the owner so must not wait
// for something else to happen in the shard.
func TestOffer_GivenUpIsFollowedByARollCall(t *testing.T) {
	p := newPost(t, 8, nil)
	of := p.offers
	of.lock()
	of.send(p.member, 0, 0, nil)
	of.send(p.member, 0, 0, nil)
	of.unlock()
	of.Answered(0, 2, nil)
	nobody := func(int) bool { return false }
	if due := of.rollCallsDue(nobody); len(due) != 0 {
		t.Fatalf("roll calls are due before the offer is given up: %v", due)
	}
	of.mu.Lock()
	of.forget(&of.shards[0], farID, time.Now().Add(2*closedOffer))
	of.mu.Unlock()
	if due := of.rollCallsDue(nobody); due[0] != 1 {
		t.Errorf("roll calls due are %v, want one of shard 0 that counts offer 1 as answered", due)
	}
	await(t, of.calls, "a wake-up")
}

// An answer may come when the session of its offer is over and another one has begun: nothing of it starts, and the
// slots are free again.
func TestOffer_AnsweredAfterItsSessionStartsNothing(t *testing.T) {
	p := newPost(t, 1, nil, &script{workBehavior, func(context.Context, Attempt) Outcome {
		t.Error("an attempt has started")
		return Outcome{}
	}})
	number := p.offer(1)
	p.session.ID = "later"
	p.offers.Answered(0, number, assigning(1, 1))
	if known := p.exec.names(p.member, 0); len(known) != 0 {
		t.Errorf("attempts of the session that is over: %v", known)
	}
	if free := p.exec.Unreserved(); free != 1 {
		t.Errorf("%d slots are free, want 1", free)
	}
}
