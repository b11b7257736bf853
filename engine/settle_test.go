package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/store"
)

func operate(do operation) command { return &operateCommand{Task: "x", Do: do} }

// A command is refused, and one copy of it is still under way when the shard has another owner and the command would be
// legal.
func TestSettle_RefusedBatchIsNotDecidedByTheNextOwner(t *testing.T) {
	b := newBench(t, -1)
	refused := b.next("sender", laneSubmit, operate(doCancel))
	b.deliver(refused)
	b.turn()
	settle := b.next("sender", laneSubmit, &settleCommand{refused.batch.number})
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
	if len(refused.got) != 1 || refused.got[0][0].code != answerNotFound || len(settle.got) != 1 || settle.got[0][0].data != nil {
		t.Errorf("answers are %+v and %+v, want one refusal, and that nothing is recorded", refused.got, settle.got)
	}
}

// The owner that refused was none any more; the one that is decides a copy.
func TestSettle_TellsWhatAnotherOwnerDecided(t *testing.T) {
	b := newBench(t, -1)
	scheduled(b)
	cancel := b.next("sender", laneSubmit, operate(doCancel))
	b.deliver(cancel)
	b.turn()
	b.takeOver()
	settle := b.next("sender", laneSubmit, &settleCommand{cancel.batch.number})
	b.deliver(settle)
	b.turn()
	if len(settle.got) != 1 || len(settle.got[0]) != 1 {
		t.Fatalf("answers are %+v", settle.got)
	}
	if of, err := decodeAnswers(settle.got[0][0].data); err != nil || len(of) != 1 || of[0].code != answerOK || of[0].life != b.task().Created {
		t.Errorf("settled as %+v, %v; want what was decided", of, err)
	}
}

// A letter and what settles it are decided in one turn.
func TestSettle_TellsWhatItsOwnEntryDecided(t *testing.T) {
	b := newBench(t, -1)
	scheduled(b)
	cancel := b.next("sender", laneSubmit, operate(doCancel))
	settle := b.next("sender", laneSubmit, &settleCommand{cancel.batch.number})
	b.post(cancel)
	b.deliver(settle)
	b.turn()
	if of, err := decodeAnswers(settle.got[0][0].data); err != nil || len(of) != 1 || of[0].code != answerOK || of[0].life == 0 {
		t.Errorf("settled as %+v, %v; want what was decided", of, err)
	}
}

// Nobody waits for it any more, but it must not outlive the number that makes it harmless.
func TestSettle_LetterThatComesLateIsRemoved(t *testing.T) {
	b := newBench(t, -1)
	refused := b.next("sender", laneSubmit, operate(doCancel))
	settle := b.next("sender", laneSubmit, &settleCommand{refused.batch.number})
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
		w.answer(w.want("at once", 1, 0), false, answer{code: answerNotFound})
		if r := <-got; r.code != answerNotFound {
			t.Errorf("told %+v", r)
		}
	})
}

func TestRouter_RefusalOfABatchSentTwiceIsSettledFirst(t *testing.T) {
	for name, settled := range map[string]struct {
		answer answer
		want   answerCode
	}{
		"never decided":      {answer{}, answerNotFound},
		"decided by another": {answer{data: encodeAnswers([]answer{{run: 7}})}, answerOK},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWays(t, true)
				got, first := w.askTwice("a")
				w.answer(first, false, answer{code: answerNotFound})
				select {
				case r := <-got:
					t.Fatalf("told %+v while a letter lies there", r)
				default:
				}
				settling := w.want("to be settled", 1, 0)
				if c := settling.settles(); c == nil || c.Number != first.number || settling.number != first.number+1 {
					t.Fatalf("batch %d is %+v, want one that settles %d", settling.number, settling.commands, first.number)
				}
				w.answer(settling, true, settled.answer)
				if r := <-got; r.code != settled.want {
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
		w.answer(first, false, answer{code: answerClock, text: "asked long ago"})
		w.answer(w.want("to be settled", 1, 0), true, answer{})
		if r := <-got; !errors.Is(r.err, ErrUnknown) {
			t.Errorf("told %+v, want that the outcome is unknown", r)
		}
	})
}

func TestRouter_RecordedAnswerToABatchSentTwiceIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got, first := w.askTwice("a")
		w.answer(first, true, answer{run: 1})
		if r := <-got; r.run != 1 {
			t.Errorf("told %+v", r)
		}
	})
}

// The store is full: nothing can be recorded, and so nothing settled.
func TestRouter_RefusesSubmitsWhileARefusalCannotBeSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got, first := w.askTwice("a")
		w.answer(first, false, overload("%s", fullStore))
		settling := w.want("to be settled", 1, 0)
		err := w.send(wayShard, laneSubmit, &getCommand{Task: "b"}, nil)
		var refused *OverloadError
		if !errors.As(err, &refused) || refused.Cause != fullStore {
			t.Errorf("a further submit: %v", err)
		}
		w.answer(settling, true, answer{})
		if r := <-got; r.code != answerOverload {
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
		refusal := overload("full")
		w.answer(first, false, refusal)
		w.answer(w.want("to be settled", 1, 0), true, answer{})
		<-got
		submit := func() error { return w.send(wayShard, laneSubmit, submitOf(Policy{}), nil) }
		var refused *OverloadError
		if err := submit(); !errors.As(err, &refused) || refused.Cause != "full" {
			t.Errorf("a new task: %v", err)
		}
		w.ask("b")
		w.answer(w.want("what creates nothing", 1, 0), true, answer{})
		time.Sleep(time.Duration(refusal.number) * time.Millisecond)
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
		w.answer(first, false, answer{code: answerNotFound})
		w.want("to be settled", 1, 0)
		w.ask("is not refused")
	})
}

// askTwice sends a command whose first copy stays unanswered, so that a second one is posted.
func (w *ways) askTwice(name string) (got chan result, first *batch) {
	w.Helper()
	got = w.ask(name)
	first = w.want("at once", 1, 0)
	time.Sleep(2 * busPatience)
	w.want("unanswered", 0, 1)
	return got, first
}

// answer answers a batch over the bus.
func (w *ways) answer(b *batch, recorded bool, answers ...answer) {
	w.onMessage(store.Message{Data: encodeAnswerMessage(wayShard, b, answers, recorded)})
	synctest.Wait()
}

// Of a letter alone there may be two readers: an owner that is about to answer it, and the next one.
func TestRouter_RefusalOfALetterIsSettledFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		w.busChanged(false)
		got := w.ask("a")
		w.answer(w.want("posted", 0, 1), false, answer{code: answerNotFound})
		w.wantSilence(got)
		w.answer(w.want("to be settled", 0, 1), true, answer{})
		if r := <-got; r.code != answerNotFound {
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
		d := in.take(&mail{}).lanes[laneSubmit][0]
		time.Sleep(10 * time.Second)
		d.reply(d.batch, []answer{overload("%s", fullStore)}, false)
		if r := <-got; r.code != answerOverload {
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
		w.answer(first, true, answer{run: 1})
		if r := <-got; r.run != 1 {
			t.Errorf("told %+v", r)
		}
	})
}
