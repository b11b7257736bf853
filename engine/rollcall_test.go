package engine

import (
	"log/slog"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/store"
)

// An owner that is away for long must not find a heap of roll calls.
func TestRollCall_WaitsForTheAnswerToTheLastOne(t *testing.T) {
	b := newBench(t, 8)
	of := b.m.offers
	busy := func(int) bool { return true }
	if due := of.rollCallsDue(busy); len(due) != 1 {
		t.Fatalf("roll calls due are %v, want one", due)
	}
	of.ownerChanged(0)
	if due := of.rollCallsDue(busy); len(due) != 0 {
		t.Errorf("roll calls due are %v before the last one is answered", due)
	}
	of.rollCalled(0, false)
	await(t, of.calls, "a wake-up for the one that was due meanwhile")
	if due := of.rollCallsDue(func(int) bool { return false }); len(due) != 1 {
		t.Errorf("roll calls due are %v, want one", due)
	}
}

// The node has given an offer up whose copy, or whose parking, is still with the owner. Filled, it would bring an attempt
// that the node drops and nobody asks for.
func TestRollCall_ClosesTheOffersThatItCountsAsAnswered(t *testing.T) {
	b := newBench(t, -1)
	parked, late := b.offer(), b.offer()
	b.deliver(parked)
	b.turn()
	b.deliver(b.next(parked.batch.Sender, command.LaneWork,
		&command.Reconcile{Node: farID, Epoch: b.own.ownership.Revision, Answered: late.batch.Number}))
	b.turn()
	b.deliver(late)
	b.turn()
	b.submit(Policy{})
	if got := b.task(); got.OnNode() {
		t.Errorf("task answers offer %d, which its node has given up", got.Offer)
	}
	b.assign()
}

// An offer of the very number that a roll call counts as answered is closed, too.
func TestRollCall_ClosesTheLastOfferThatItCountsAsAnswered(t *testing.T) {
	b := newBench(t, -1)
	parked := b.offer()
	b.deliver(parked)
	b.turn()
	b.deliver(b.next(parked.batch.Sender, command.LaneWork,
		&command.Reconcile{Node: farID, Epoch: b.own.ownership.Revision, Answered: parked.batch.Number}))
	b.turn()
	b.submit(Policy{})
	if got := b.task(); got.OnNode() {
		t.Errorf("task answers offer %d, which its node has given up", got.Offer)
	}
	b.assign()
}

func TestRollCall_OfASessionThatIsOverIsNotSent(t *testing.T) {
	in := newInbox()
	s := sender.New(sender.Config{ID: "c-1", Shards: 1, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	s.ServeHere(0, in)
	m := &member{sender: s, offers: &offers{shards: make([]shardOffers, 1)}, exec: newExecutor(nil, 1, nil, time.Now, nil)}
	m.view.Store(&store.Membership{Owners: map[int]store.Owner{0: {Revision: 1}}})
	rolls := func() int {
		m.offers.shards[0].calling = 1
		m.callRoll(0, 7, func() {})
		mail := in.take(&mail{})
		return len(mail.lanes[command.LaneWork])
	}
	m.over.Store(true)
	if n := rolls(); n != 0 || !m.offers.shards[0].rollCall {
		t.Errorf("%d roll calls without the attempts that were forgotten; to be repeated: %t", n, m.offers.shards[0].rollCall)
	}
	m.over.Store(false)
	if n := rolls(); n != 1 {
		t.Errorf("%d roll calls of a living session, want 1", n)
	}
}
