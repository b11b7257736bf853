package shard_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/command/commandtest"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/stores"
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

// An owner whose session is old takes on no work, and answers no reads from memory.
func TestOwner_WithAnOldSessionStartsAndShowsNothing(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	b.node.old = true
	offer, read := b.offer(), b.next("reader", command.LaneQuery, &command.Get{Task: "x"})
	b.deliver(offer)
	b.deliver(read)
	b.turn()
	if n := b.count(events.KindStarted); n != 0 {
		t.Errorf("%d attempts were started", n)
	}
	if len(read.got) != 0 {
		t.Errorf("the read was answered %+v", read.got)
	}
}

// A clock at 0 makes the one decision that the fold refuses and nothing else prevents: a task without a scheduled
// time. No time passes in the test: the time of a shard goes on with the monotonic clock, and would leave 0 after 2 ms.
func TestOwner_RefusesTheCommandOfABugAndServesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(t)
		b.time = 0
		l := b.next("c-1", command.LaneSubmit, submitOf(events.Policy{}), &command.Operate{Task: "x", Do: command.DoSuspend})
		b.deliver(l)
		b.turn()
		if len(l.got) != 1 || b.sealed() != 0 ||
			l.got[0][0].Code != command.AnswerBug || l.got[0][1].Code != command.AnswerNotFound {
			t.Errorf("answers %+v, %d entries", l.got, b.sealed())
		}
		if s := b.report(); s.Bugs != 1 {
			t.Errorf("the shard tells of %d bugs, want 1", s.Bugs)
		}
		b.time = benchStart
		b.submit(events.Policy{})
		if s := b.report(); s.Bugs != 1 || s.Live != 1 {
			t.Errorf("after a submit the shard tells %+v", s)
		}
	})
}

// report returns what the owner tells of its shard.
func (b *fixture) report() *command.ShardReport {
	b.Helper()
	s, err := command.ReadLenient[command.ShardReport](b.ask(command.LaneQuery, &command.Info{}).Data)
	if err != nil {
		b.Fatal(err)
	}
	return &s
}

// laneOf returns where a command travels.
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
