package engine

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
)

// Between two attempts in a row a task is ready for a moment although slots are free: it is not said to lack one.
func TestExplain_SaysThatASlotIsFreeWhileATaskIsPickedUp(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	members := present(2, selfID, farID)
	far := members.Nodes[farID]
	far.Slots, far.Behaviors = 1, []string{benchBehavior}
	members.Nodes[farID] = far
	b.m.view.Store(&members)
	x := b.task()
	if e := b.own.whyReady(&x); e.Why != WhyWaiting || !strings.HasSuffix(e.Text, "on "+farID) {
		t.Errorf("explained as %+v, want that it waits for a slot there", e)
	}
	offer := b.offer()
	b.own.offers = []*parkedOffer{{delivery: delivery{Batch: offer.batch}, Offer: offer.batch.Commands[0].(*command.Offer)}}
	if e := b.own.whyReady(&x); e.Why != WhyWaiting || !strings.Contains(e.Text, "a slot is free") {
		t.Errorf("explained as %+v, want that a slot is free", e)
	}
}
