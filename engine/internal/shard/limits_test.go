package shard_test

import (
	"bytes"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/command/commandtest"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/stores"
	"taskledger/events"
)

// laneOf is where a command travels.
func laneOf(c command.Command) uint8 {
	switch c.(type) {
	case *command.Submit, *command.Merge, *command.Operate, *command.Pause, *stores.Update, *stores.Claim:
		return command.LaneSubmit
	case *command.Complete, *command.Progress, *command.Reconcile:
		return command.LaneWork
	case *command.Offer:
		return command.LaneOffer
	}
	return command.LaneQuery
}

// payloadOf is a payload of n bytes.
func payloadOf(n int) events.Payload { return events.JSON(bytes.Repeat([]byte("1"), n-1)) }

// oversized yields every command with each of its fields too large by one.
func oversized(yield func(field string, c command.Command) bool) {
	for op := uint64(1); op < commandtest.Count(); op++ {
		for field, c := range commandtest.Oversized(op) {
			if !yield(field, c) {
				return
			}
		}
	}
}

// The sender of another build, or of somebody else, checks nothing.
func TestOwner_RefusesWhatIsTooLargeAndServesOn(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	n := 0
	for field, c := range oversized {
		if _, err := commands.Table.DecodeBatch(b.next("nobody", laneOf(c), c).batch.Encode()); err != nil {
			t.Errorf("%s: it does not reach the owner: %v", field, err)
			continue
		}
		n++
		if a := b.ask(laneOf(c), c); a.Code != command.AnswerInvalid || !strings.Contains(a.Text, "exceed") && !strings.Contains(a.Text, "want") {
			t.Errorf("%s: answer %+v, want it refused by field and limit", field, a)
		}
		b.accept(command.LaneSubmit, operate(command.DoSuspend))
		b.accept(command.LaneSubmit, operate(command.DoResume))
	}
	if want := 1 + 2*n; b.sealed() != want {
		t.Errorf("%d entries, want %d: of what is refused nothing is recorded", b.sealed(), want)
	}
}
