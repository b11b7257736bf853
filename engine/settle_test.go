package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/store"
	"taskledger/task"
)

func operate(do task.Operation) command.Command { return &command.Operate{Task: "x", Do: do} }

// A command is refused, and one copy of it is still under way when the shard has another owner and the command would be
// legal.
func TestSettle_RefusedBatchIsNotDecidedByTheNextOwner(t *testing.T) {
	b := newBench(t, -1)
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
	b := newBench(t, -1)
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
	b := newBench(t, -1)
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
	b := newBench(t, -1)
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

func TestRouter_RefusalOfABatchSentOnceIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got := w.ask("a")
		w.answer(w.want("at once", 1, 0), false, command.Answer{Code: command.AnswerNotFound})
		if r := <-got; r.Code != command.AnswerNotFound {
			t.Errorf("told %+v", r)
		}
	})
}

func TestRouter_RefusalOfABatchSentTwiceIsSettledFirst(t *testing.T) {
	for name, settled := range map[string]struct {
		answer command.Answer
		want   command.AnswerCode
	}{
		"never decided":      {command.Answer{}, command.AnswerNotFound},
		"decided by another": {command.Answer{Data: command.EncodeAnswers([]command.Answer{{Run: 7}})}, command.AnswerOK},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWays(t, true)
				got, first := w.askTwice("a")
				w.answer(first, false, command.Answer{Code: command.AnswerNotFound})
				select {
				case r := <-got:
					t.Fatalf("told %+v while a letter lies there", r)
				default:
				}
				settling := w.want("to be settled", 1, 0)
				if c := settling.Barrier(); c == nil || c.Number != first.Number || settling.Number != first.Number+1 {
					t.Fatalf("batch %d is %+v, want one that settles %d", settling.Number, settling.Commands, first.Number)
				}
				w.answer(settling, true, settled.answer)
				if r := <-got; r.Code != settled.want {
					t.Errorf("told %+v, want code %d", r, settled.want)
				}
			})
		})
	}
}

// A process sleeps for hours while its batch is decided, and the owner has forgotten the number when it wakes: it refuses the batch as
// too old, and knows of none. That is no failure.
func TestRouter_RefusalOfABatchThatMayBeForgottenIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got, first := w.askTwice("a")
		w.now = func() time.Time { return time.Now().Add(2 * time.Hour) } // the monotonic clock slept, too
		w.answer(first, false, command.Answer{Code: command.AnswerClock, Text: "asked long ago"})
		w.answer(w.want("to be settled", 1, 0), true, command.Answer{})
		if r := <-got; !errors.Is(r.err, ErrUnknown) {
			t.Errorf("told %+v, want that the outcome is unknown", r)
		}
	})
}

func TestRouter_RecordedAnswerToABatchSentTwiceIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got, first := w.askTwice("a")
		w.answer(first, true, command.Answer{Run: 1})
		if r := <-got; r.Run != 1 {
			t.Errorf("told %+v", r)
		}
	})
}

// The store is full: nothing can be recorded, and so nothing settled.
func TestRouter_RefusesSubmitsWhileARefusalCannotBeSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got, first := w.askTwice("a")
		w.answer(first, false, command.Overload("%s", command.StoreFull))
		settling := w.want("to be settled", 1, 0)
		err := w.send(wayShard, command.LaneSubmit, &command.Get{Task: "b"}, nil)
		var refused *OverloadError
		if !errors.As(err, &refused) || refused.Cause != command.StoreFull {
			t.Errorf("a further submit: %v", err)
		}
		w.answer(settling, true, command.Answer{})
		if r := <-got; r.Code != command.AnswerOverload {
			t.Errorf("told %+v", r)
		}
		w.ask("c")
		w.want("settled", 1, 0)
	})
}

// Every refusal that takes a letter is settled in the journal, which may have no room.
func TestRouter_RefusesNewTasksForAWhileAfterARefusalThatWasSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got, first := w.askTwice("a")
		refusal := command.Overload("full")
		w.answer(first, false, refusal)
		w.answer(w.want("to be settled", 1, 0), true, command.Answer{})
		<-got
		submit := func() error { return w.send(wayShard, command.LaneSubmit, submitOf(Policy{}), nil) }
		var refused *OverloadError
		if err := submit(); !errors.As(err, &refused) || refused.Cause != "full" {
			t.Errorf("a new task: %v", err)
		}
		w.ask("b")
		w.answer(w.want("what creates nothing", 1, 0), true, command.Answer{})
		time.Sleep(time.Duration(refusal.Number) * time.Millisecond)
		if err := submit(); err != nil {
			t.Errorf("a new task when the time is over: %v", err)
		}
	})
}

// The number that settles takes no command with it: those that wait still wait for their owner.
func TestRouter_SettlingIsNoDeparture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		w.ask("a")
		first := w.want("at once", 1, 0)
		for range fewWaiting + 1 {
			w.ask("waits")
		}
		time.Sleep(2 * maxWait)
		w.taken()
		w.answer(first, false, command.Answer{Code: command.AnswerNotFound})
		w.want("to be settled", 1, 0)
		w.ask("is not refused")
	})
}

// askTwice sends a command whose first copy stays unanswered, so that a second one is posted.
func (w *ways) askTwice(name string) (got chan result, first *command.Batch) {
	w.Helper()
	got = w.ask(name)
	first = w.want("at once", 1, 0)
	time.Sleep(2 * busPatience)
	w.want("unanswered", 0, 1)
	return got, first
}

// answer answers a batch over the bus.
func (w *ways) answer(b *command.Batch, recorded bool, answers ...command.Answer) {
	w.onMessage(store.Message{Data: command.EncodeAnswerMessage(wayShard, b, answers, recorded)})
	synctest.Wait()
}

// Of a letter alone there may be two readers: an owner that is about to answer it, and the next one.
func TestRouter_RefusalOfALetterIsSettledFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		w.busChanged(false)
		got := w.ask("a")
		w.answer(w.want("posted", 0, 1), false, command.Answer{Code: command.AnswerNotFound})
		w.wantSilence(got)
		w.answer(w.want("to be settled", 0, 1), true, command.Answer{})
		if r := <-got; r.Code != command.AnswerNotFound {
			t.Errorf("told %+v", r)
		}
	})
}

// An owner in this process was held up: what lies in its inbox goes nowhere else, however often it was put there.
func TestRouter_LateRefusalOfTheOwnerInThisProcessIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		in := newInbox()
		w.serveHere(wayShard, in)
		got := w.ask("a")
		synctest.Wait()
		d := in.take(&mail{}).lanes[command.LaneSubmit][0]
		time.Sleep(10 * time.Second)
		d.reply(d.Batch, []command.Answer{command.Overload("%s", command.StoreFull)}, false)
		if r := <-got; r.Code != command.AnswerOverload {
			t.Errorf("told %+v", r)
		}
	})
}

func TestRouter_AnswersThatDoNotFitSettleNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got, first := w.askTwice("a")
		w.answer(first, false)
		w.want("nothing follows", 0, 0)
		w.answer(first, true, command.Answer{Run: 1})
		if r := <-got; r.Run != 1 {
			t.Errorf("told %+v", r)
		}
	})
}
