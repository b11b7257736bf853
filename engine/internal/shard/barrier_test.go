package shard_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/task"
)

func operate(do task.Operation) command.Command { return &command.Operate{Task: "x", Do: do} }

// A command is refused, and one copy of it is still under way when the shard has another owner and the command
// would be legal.
func TestSettle_RefusedBatchIsNotDecidedByTheNextOwner(t *testing.T) {
	b := newFixture(t)
	refused := b.next("sender", command.LaneSubmit, operate(command.DoCancel))
	b.deliver(refused)
	b.turn()
	settle := b.next("sender", command.LaneSubmit, &command.Barrier{Number: refused.batch.Number})
	b.deliver(settle)
	b.turn()
	b.takeOver()
	scheduled(b)
	written := b.sealed()
	b.deliver(refused)
	b.turn()
	if task := b.task(); b.sealed() != written || task.Final() {
		t.Errorf("decided after all: events are %s", b.kinds())
	}
	if len(refused.got) != 1 || refused.got[0][0].Code != command.AnswerNotFound || len(settle.got) != 1 || settle.got[0][0].Data != nil {
		t.Errorf("answers are %+v and %+v, want one refusal, and that nothing is recorded", refused.got, settle.got)
	}
}

// The owner that refused was none any more; the one that is decides a copy.
func TestSettle_TellsWhatAnotherOwnerDecided(t *testing.T) {
	b := newFixture(t)
	scheduled(b)
	cancel := b.next("sender", command.LaneSubmit, operate(command.DoCancel))
	b.deliver(cancel)
	b.turn()
	b.takeOver()
	settle := b.next("sender", command.LaneSubmit, &command.Barrier{Number: cancel.batch.Number})
	b.deliver(settle)
	b.turn()
	if len(settle.got) != 1 || len(settle.got[0]) != 1 {
		t.Fatalf("answers are %+v", settle.got)
	}
	if of, err := command.DecodeAnswers(settle.got[0][0].Data); err != nil || len(of) != 1 || of[0].Code != command.AnswerOK || of[0].Life != b.task().Created {
		t.Errorf("settled as %+v, %v; want what was decided", of, err)
	}
}

// A letter and what settles it are decided in one turn.
func TestSettle_TellsWhatItsOwnEntryDecided(t *testing.T) {
	b := newFixture(t)
	scheduled(b)
	cancel := b.next("sender", command.LaneSubmit, operate(command.DoCancel))
	settle := b.next("sender", command.LaneSubmit, &command.Barrier{Number: cancel.batch.Number})
	b.post(cancel)
	b.deliver(settle)
	b.turn()
	if of, err := command.DecodeAnswers(settle.got[0][0].Data); err != nil || len(of) != 1 || of[0].Code != command.AnswerOK || of[0].Life == 0 {
		t.Errorf("settled as %+v, %v; want what was decided", of, err)
	}
}

// Nobody waits for it any more, but it must not outlive the number that makes it harmless.
func TestSettle_LetterThatComesLateIsRemoved(t *testing.T) {
	b := newFixture(t)
	refused := b.next("sender", command.LaneSubmit, operate(command.DoCancel))
	settle := b.next("sender", command.LaneSubmit, &command.Barrier{Number: refused.batch.Number})
	b.deliver(settle)
	b.turn()
	b.deliver(refused)
	b.turn()
	if len(refused.got) != 0 {
		t.Errorf("a message is answered with %+v", refused.got)
	}
	b.post(refused)
	b.turn()
	if len(refused.got) != 1 || len(refused.got[0]) != 0 {
		t.Errorf("a letter is answered with %+v, want no answers", refused.got)
	}
}
