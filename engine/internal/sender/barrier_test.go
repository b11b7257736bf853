package sender_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/store"
	"taskledger/task"
)

func TestSender_RefusalOfABatchSentOnceIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got := w.ask("a")
		w.answer(w.want("at once", 1, 0), false, command.Answer{Code: command.AnswerNotFound})
		if r := <-got; r.Code != command.AnswerNotFound {
			t.Errorf("told %+v", r)
		}
	})
}

func TestSender_RefusalOfABatchSentTwiceIsSettledFirst(t *testing.T) {
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

// A process sleeps for hours while its batch is decided, and the owner has forgotten the number when it wakes: it
// refuses the batch as too old, and knows of none. That is no failure.
func TestSender_RefusalOfABatchThatMayBeForgottenIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got, first := w.askTwice("a")
		w.clock = 2 * time.Hour // the monotonic clock slept, too
		w.answer(first, false, command.Answer{Code: command.AnswerClock, Text: "asked long ago"})
		w.answer(w.want("to be settled", 1, 0), true, command.Answer{})
		if r := <-got; !errors.Is(r.err, task.ErrUnknown) {
			t.Errorf("told %+v, want that the outcome is unknown", r)
		}
	})
}

func TestSender_RecordedAnswerToABatchSentTwiceIsPassedOn(t *testing.T) {
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
func TestSender_RefusesSubmitsWhileARefusalCannotBeSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got, first := w.askTwice("a")
		w.answer(first, false, command.Overload("%s", command.StoreFull))
		settling := w.want("to be settled", 1, 0)
		err := w.Send(wayShard, command.LaneSubmit, sender.Call{Command: &command.Get{Task: "b"}})
		var refused *task.OverloadError
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
func TestSender_RefusesNewTasksForAWhileAfterARefusalThatWasSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got, first := w.askTwice("a")
		refusal := command.Overload("full")
		w.answer(first, false, refusal)
		w.answer(w.want("to be settled", 1, 0), true, command.Answer{})
		<-got
		try := func() error {
			return w.Send(wayShard, command.LaneSubmit, sender.Call{Command: submit(2)})
		}
		var refused *task.OverloadError
		if err := try(); !errors.As(err, &refused) || refused.Cause != "full" {
			t.Errorf("a new task: %v", err)
		}
		w.ask("b")
		w.answer(w.want("what creates nothing", 1, 0), true, command.Answer{})
		time.Sleep(time.Duration(refusal.Number) * time.Millisecond)
		if err := try(); err != nil {
			t.Errorf("a new task when the time is over: %v", err)
		}
	})
}

// The number that settles takes no command with it: those that wait still wait for their owner.
func TestSender_SettlingIsNoDeparture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		w.ask("a")
		first := w.want("at once", 1, 0)
		for range sender.FewQueued + 1 {
			w.ask("waits")
		}
		time.Sleep(2 * sender.MaxQueueTime)
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
	time.Sleep(2 * sender.BusTimeout)
	w.want("unanswered", 0, 1)
	return got, first
}

// answer answers a batch over the bus.
func (w *ways) answer(b *command.Batch, recorded bool, answers ...command.Answer) {
	w.OnMessage(store.Message{Data: command.EncodeAnswerMessage(wayShard, b, answers, recorded)})
	synctest.Wait()
}

// Of a letter alone there may be two readers: an owner that is about to answer it, and the next one.
func TestSender_RefusalOfALetterIsSettledFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		w.BusChanged(false)
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
func TestSender_LateRefusalOfTheOwnerInThisProcessIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		in := &inbox{}
		w.ServeHere(wayShard, in)
		got := w.ask("a")
		d := in.first()
		time.Sleep(10 * time.Second)
		d.reply(d.Batch, []command.Answer{command.Overload("%s", command.StoreFull)}, false)
		if r := <-got; r.Code != command.AnswerOverload {
			t.Errorf("told %+v", r)
		}
	})
}

func TestSender_AnswersThatDoNotFitSettleNothing(t *testing.T) {
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
