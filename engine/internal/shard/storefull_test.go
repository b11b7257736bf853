package shard_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
)

// The reply to a refusal was lost: its sender asks again, and must not wait until there is space.
func TestFull_RefusesAgainWhatItRefused(t *testing.T) {
	b := newFixture(t)
	refused := map[projection.SenderLane]uint64{}
	l := b.next("sender", command.LaneSubmit, submitOf(events.Policy{}), &command.Operate{Task: "x", Do: command.DoCancel})
	for range 2 {
		b.deliver(l)
		b.own.RefuseGathered(refused)
		b.node.tasks.Wait()
	}
	if len(l.got) != 2 || l.got[0][0].Code != command.AnswerOverload || l.got[1][0].Code != command.AnswerOverload {
		t.Errorf("told %+v, want two refusals", l.got)
	}
}

// What the entry under way decides is answered when it is committed, not before: its sender only learns, once a
// copy, that it waits for room.
func TestFull_LeavesWhatIsDecidedToItsEntry(t *testing.T) {
	b := newFixture(t)
	l := b.next("sender", command.LaneSubmit, submitOf(events.Policy{}))
	b.own.Remember(projection.SenderLane{Sender: "sender", Lane: command.LaneSubmit}, l.batch.Number, []command.Answer{{}})
	for copies := 1; copies <= 2; copies++ {
		b.deliver(l)
		for range 2 {
			b.own.RefuseGathered(map[projection.SenderLane]uint64{})
			b.node.tasks.Wait()
		}
		if len(l.got) != copies || len(l.got[copies-1]) != 1 || l.got[copies-1][0].Code != command.AnswerStoreFull || b.own.Inbox().Size() != 1 {
			t.Errorf("%d copies: told %+v, %d batches wait; want that it waits once each, and one", copies, l.got, b.own.Inbox().Size())
		}
	}
}

// The answer to a letter is a write.
func TestFull_TellsNothingToASenderOfLetters(t *testing.T) {
	b := newFixture(t)
	l := b.next("sender", command.LaneSubmit, submitOf(events.Policy{}))
	b.post(l)
	b.own.RefuseGathered(map[projection.SenderLane]uint64{})
	b.node.tasks.Wait()
	if len(l.got) != 0 || b.own.Inbox().Size() != 1 {
		t.Errorf("told %+v, %d batches wait; want none and one", l.got, b.own.Inbox().Size())
	}
}

// An owner that gave its shard up would only have it again, and find no more room.
func TestFull_AnOwnerWaitsUntilItCanSayWhatNodesMustRead(t *testing.T) {
	b := newFixture(t)
	b.store.noRoom = 2
	b.accept(command.LaneSubmit, &command.Pause{Behavior: "work", Paused: true})
	if b.store.noRoom != 0 || b.store.members.Written.Kind != events.KindPaused || b.sealed() != 1 {
		t.Errorf("%d calls are left, %+v is written, with %d entries", b.store.noRoom, b.store.members.Written, b.sealed())
	}
}

// What is in memory holds the entry under way, which may never be committed. Nobody is told of it, and nobody waits
// in silence.
func TestFull_TellsEveryQuestionWhyItHasNoAnswer(t *testing.T) {
	b := newFixture(t)
	l := b.next("sender", command.LaneQuery, &command.Get{Task: "x"}, &command.Get{Task: "x", Linear: true}, &command.List{}, &command.Explain{Task: "x"},
		&command.Await{Task: "x"}, &command.HandOver{Node: "b"}, &command.Info{}, &command.Info{Digest: true})
	b.deliver(l)
	b.own.RefuseGathered(map[projection.SenderLane]uint64{})
	if len(l.got) != 1 || len(l.got[0]) != len(l.batch.Commands) {
		t.Fatalf("told %+v", l.got)
	}
	for i, want := range []command.AnswerCode{command.AnswerUnserved, command.AnswerUnserved, command.AnswerUnserved, command.AnswerUnserved, command.AnswerStoreFull, command.AnswerState, command.AnswerOK, command.AnswerOK} {
		a := l.got[0][i]
		if a.Code != want || want != command.AnswerStoreFull && want != command.AnswerOK && !strings.Contains(a.Text, command.StoreFull) {
			t.Errorf("%T is told %+v, want code %d and why", l.batch.Commands[i], a, want)
		}
	}
	if s, err := command.ReadLenient[command.ShardReport](l.got[0][7].Data); err != nil || !strings.Contains(s.Problem, command.StoreFull) {
		t.Errorf("who wants to compare the state is told %+v, %v", s, err)
	}
	b.post(l)
	b.own.RefuseGathered(map[projection.SenderLane]uint64{})
	if len(l.got) != 1 || b.own.Inbox().Size() != 1 {
		t.Errorf("a Stored: told %+v, %d batches wait; want nothing and one", l.got, b.own.Inbox().Size())
	}
}
