package shard_test

import (
	"errors"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/store"
)

// While the entry is on its way nothing may be told or started; afterwards everything is.
func TestEffects_NoneLeavesTheOwnerBeforeItsEntryIsCommitted(t *testing.T) {
	b := newWorker(t, 1, benchBehavior)
	l := b.next("sender", command.LaneSubmit, submitOf(events.Policy{}))
	b.store.commit = func() {
		if len(l.got) > 0 {
			t.Error("the submit is answered before it is committed")
		}
		if len(b.node.launched) > 0 {
			t.Error("the attempt is started before its Started is committed")
		}
	}
	b.deliver(l)
	b.turn()
	if len(l.got) != 1 {
		t.Errorf("answers are %+v, want one", l.got)
	}
	if len(b.node.launched) != 1 {
		t.Errorf("%d attempts are started, want one", len(b.node.launched))
	}
}

func TestEffects_OutcomeIsToldOnlyWhenItIsCommitted(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	b.assign()
	b.store.commit = func() {
		if len(b.node.announced) > 0 {
			t.Error("the outcome is announced before it is committed")
		}
	}
	b.accept(command.LaneWork, report(b.task(), command.Succeeded))
	if len(b.node.announced) != 1 {
		t.Errorf("%d outcomes are announced, want the committed one", len(b.node.announced))
	}
}

// A submit that joins and a refusal cause no event, but what they say depends on the entry in the making. When that is
// refused, another owner decides otherwise.
func TestAnswer_WithoutEventsWaitsForTheEntryItDependsOn(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	b.assign()
	outcome := b.next("far work", command.LaneWork, report(b.task(), command.Succeeded))
	join := b.next("sender", command.LaneSubmit, submitOf(events.Policy{}))
	cancel := b.next("operator", command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoCancel})
	for _, l := range []*letter{outcome, join, cancel} {
		b.deliver(l)
	}
	b.store.refuse = store.ErrFenced
	if err := b.own.Turn(t.Context()); !errors.Is(err, store.ErrFenced) {
		t.Fatalf("turn: %v, want %v", err, store.ErrFenced)
	}
	for _, l := range []*letter{outcome, join, cancel} {
		if len(l.got) > 0 {
			t.Errorf("%T was answered %+v by an owner that could not commit", l.batch.Commands[0], l.got)
		}
	}
	b.store.refuse = nil
	b.takeOver()
	if task := b.task(); !task.OnNode() {
		t.Errorf("task is %s for the next owner, want RUNNING", task.Phase())
	}
}

// A question tells of what is committed, and waits for no entry after that: a commit may take long.
func TestAnswer_ToAQuestionWaitsForNoCommit(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	_, running := b.assign()
	outcome := b.next("far work", command.LaneWork, report(running, command.Succeeded))
	read := b.next("reader", command.LaneQuery, &command.Get{Task: "x"})
	b.deliver(outcome)
	b.deliver(read)
	b.store.commit = func() {
		if len(read.got) != 1 || read.got[0][0].Code != command.AnswerOK {
			t.Fatalf("told %+v before the commit, want an answer", read.got)
		}
		if shown, err := command.DecodeTask(read.got[0][0].Data); err != nil || !shown.OnNode() {
			t.Errorf("told of %s, %v: that is not committed yet, or maybe never", shown.Phase(), err)
		}
	}
	b.turn()
	if n := b.sealed(); n != 3 {
		t.Errorf("%d entries, want three", n)
	}
}

// The time of an entry is that of its decision, however long it took to answer questions before.
func TestAnswer_ToAQuestionTakesNoTimeFromTheShard(t *testing.T) {
	b := newFixture(t)
	const takes = 300 * time.Millisecond
	read := b.next("reader", command.LaneQuery, &command.Get{Task: "x"})
	copied, err := commands.Table.DecodeBatch(read.batch.Encode())
	if err != nil {
		t.Fatal(err)
	}
	b.own.Inbox().Deliver(shard.Delivery{Batch: copied, Reply: func(*command.Batch, []command.Answer, bool) {
		time.Sleep(takes) // of both clocks: the owner measures by the monotonic one
		b.time = b.time.Add(takes)
	}})
	b.submit(events.Policy{})
	if ahead := b.own.Now().Time().Sub(b.time.Time()); ahead > takes/10 {
		t.Errorf("the time of the shard is %s ahead", ahead)
	}
}

// Both are decided in one turn: the second sees what the first will have done.
func TestAnswer_DecidedTogetherSeesTheEventsBeforeIt(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	b.assign()
	outcome := b.next("far work", command.LaneWork, report(b.task(), command.Succeeded))
	join := b.next("sender", command.LaneSubmit, submitOf(events.Policy{}))
	b.deliver(join)
	b.deliver(outcome)
	b.turn()
	if len(join.got) != 1 || join.got[0][0].Run != 1 || !join.got[0][0].Joined {
		t.Errorf("join is answered %+v, want run 1", join.got)
	}
	if n := b.sealed(); n != 3 {
		t.Errorf("%d entries, want one for both batches", n)
	}
}

// A slot that was taken for a start which was not committed must be free again.
func TestEffects_RefusedEntryGivesItsSlotsBack(t *testing.T) {
	b := newWorker(t, 1, benchBehavior)
	b.store.refuse = store.ErrFenced
	b.deliver(b.next("sender", command.LaneSubmit, submitOf(events.Policy{})))
	if err := b.own.Turn(t.Context()); !errors.Is(err, store.ErrFenced) {
		t.Fatalf("turn: %v, want %v", err, store.ErrFenced)
	}
	if n := b.node.Unused(); n != 1 || len(b.node.launched) > 0 {
		t.Errorf("%d slots are free, and %d attempts started; want 1 and none", n, len(b.node.launched))
	}
	if n := b.sealed(); n != 0 {
		t.Errorf("%d entries", n)
	}
}

// An entry is sealed at its size; what did not fit is decided next, in order, and exactly once.
func TestTurn_WhatDoesNotFitIsDecidedInTheNextEntry(t *testing.T) {
	b := newFixture(t)
	var all []*letter
	for i := range 5 {
		c := submitOf(events.Policy{})
		c.Task = events.TaskID(rune('a' + i))
		c.Params = events.JSON(append(append([]byte{'"'}, make100k()...), '"'))
		l := b.next("sender"+string(c.Task), command.LaneSubmit, c)
		b.deliver(l)
		all = append(all, l)
	}
	for range 3 {
		b.turn()
	}
	for _, l := range all {
		if len(l.got) != 1 {
			t.Errorf("batch of %s is answered %d times", l.batch.Sender, len(l.got))
		}
	}
	if n := b.count(events.KindCreated); n != 5 || b.sealed() != 2 {
		t.Errorf("%d tasks in %d entries, want 5 in 2", n, b.sealed())
	}
}

func make100k() []byte {
	text := make([]byte, 100<<10)
	for i := range text {
		text[i] = 'x'
	}
	return text
}
