package shard_test

import (
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/events"
	"taskledger/task"
)

// Between two attempts in a row a task is ready for a moment although slots are free: it is not said to lack one.
func TestExplain_SaysThatASlotIsFreeWhereAnOfferIsParked(t *testing.T) {
	for parked, want := range map[bool]string{false: "on " + farID, true: "a slot is free"} {
		b := newFixture(t)
		far := b.store.members.Nodes[farID]
		far.Slots, far.Behaviors = 1, []string{benchBehavior}
		b.store.members.Nodes[farID] = far
		if parked {
			b.deliver(b.offer())
		}
		c := submitOf(events.Policy{})
		c.NotBefore = b.time.Add(time.Minute)
		b.accept(command.LaneSubmit, c)
		b.time = c.NotBefore
		e, err := explanation.Decode("x", b.ask(command.LaneQuery, &command.Explain{Task: "x"}).Data)
		if err != nil || e.Why != task.WhyWaiting || !strings.Contains(e.Text, want) {
			t.Errorf("an offer is parked: %t: explained as %+v, %v; want %q", parked, e, err, want)
		}
	}
}
