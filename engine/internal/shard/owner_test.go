package shard_test

import (
	"fmt"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
)

// The clock runs ahead for a moment in which nothing was due, and is right again.
func TestOwner_ForgetsATimeThatNothingBeganAt(t *testing.T) {
	const ahead = 2 * time.Hour
	begun := time.Now()
	b := newFixture(t)
	b.accept(command.LaneSubmit, &command.Submit{Task: "x", Behavior: benchBehavior, Policy: submitOf(events.Policy{}).Policy,
		NotBefore: b.time.Add(3 * time.Hour)})
	b.time = b.time.Add(ahead)
	b.turn()
	b.time = b.time.Add(-ahead)
	b.accept(command.LaneSubmit, &command.Submit{Task: "y", Behavior: "none", Policy: submitOf(events.Policy{}).Policy})
	// The time of the shard goes on by what passes while the test runs.
	if late := b.own.State().Task("y").Due.Time().Sub(b.time.Time()); late > time.Since(begun) {
		t.Errorf("created to be due %s from now", late)
	}
}

// A batch that was refused is known when as many others have been decided as are remembered.
func TestOwner_KnowsARefusalWhenItsMemoryBeginsAnew(t *testing.T) {
	b := newFixture(t)
	l := b.next("sender", command.LaneSubmit, operate(command.DoCancel))
	b.deliver(l)
	b.turn()
	for i := range projection.MaxSenders {
		b.own.Remember(projection.SenderLane{Sender: fmt.Sprint(i), Lane: command.LaneSubmit}, 1, nil)
	}
	b.submit(events.Policy{})
	b.deliver(l)
	b.turn()
	if len(l.got) != 2 || l.got[1][0].Code != command.AnswerNotFound {
		t.Errorf("told %+v, want the same refusal twice", l.got)
	}
}

// The offer of a process that crashed is never closed by a later one.
func TestOwner_DropsTheOffersOfNodesThatAreGone(t *testing.T) {
	b := newFixture(t)
	offer := func(sender, node string) {
		b.deliver(b.next(sender, command.LaneOffer, &command.Offer{Node: node, Lease: 3000, Slots: 1}))
		b.turn()
	}
	offer("gone", farID)
	offer("unseen", "unseen") // its key may come into view later
	offer("one", selfID)
	delete(b.store.members.Nodes, farID)
	offer("two", selfID)
	left := b.own.Offers()
	if fmt.Sprint(left) != "[unseen one two]" {
		t.Errorf("offers of %v are left", left)
	}
}
