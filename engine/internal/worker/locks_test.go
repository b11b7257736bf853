package worker_test

import (
	"context"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

// The report of an attempt that the bus holds up holds up neither the end of the attempt nor who brings the answer.
func TestProgress_HeldUpByTheBusHoldsUpNobodyElse(t *testing.T) {
	entered, ended := make(chan struct{}), make(chan struct{}, 1)
	w := newFixture(t, 1, nil, &script{"b", func(_ context.Context, a task.Attempt) task.Outcome {
		go a.Progress(1, 2, "")
		<-entered
		return task.Outcome{}
	}})
	left := make(chan struct{})
	w.bus.meanwhile = func() {
		close(entered)
		testkit.WantReturn(t, "the end of the attempt", func() { <-ended })
		testkit.WantReturn(t, "the answer", func() { w.answer(command.LaneWork, 1) })
		close(left)
	}
	w.exec.Freed = func() { ended <- struct{}{} }
	w.sender.ServeHere(0, nil)
	w.sender.BusChanged(true)
	w.launch("b", task.Policy{})
	<-left
	if got := w.bus.calls.Load(); got != 2 {
		t.Errorf("%d batches were sent, want that of the report and that of the outcome", got)
	}
}

// answer brings the answer to a batch of one command.
func (w *fixture) answer(lane uint8, number uint64) {
	b := &command.Batch{Lane: lane, Number: number}
	w.sender.OnMessage(store.Message{Data: command.EncodeAnswerMessage(0, b, []command.Answer{{}}, true)})
}

func TestLog_IsNotWrittenUnderALock(t *testing.T) {
	w := newFixture(t, 1, nil)
	log := &testkit.CallingLog{Do: func() { w.offers.Unanswered() }}
	w.log.Handler = log
	number := w.offers.Send(w.session, 1, 0, nil)
	testkit.WantReturn(t, "the log of offers", func() { w.offers.Answered(1, number, []command.Answer{{Data: events.JSON([]byte("x"))}}) })
	if n := log.Records(); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// The clock is the caller's, and may ask the engine in its turn.
func TestNow_IsCalledWithoutALock(t *testing.T) {
	w := newFixture(t, 1, nil)
	calls := 0
	w.now = func() time.Time {
		calls++
		w.inbox.reports()
		w.offers.Unanswered()
		return time.Now()
	}
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"the offers of a new owner", func() { w.offers.OwnerChanged(2) }},
		{"offers", func() { w.offers.Adjust(w.session, time.Now()) }},
		{"the end of offers", func() { w.offers.Withdraw(w.session) }},
	} {
		before := calls
		testkit.WantReturn(t, c.what, c.do)
		if t.Failed() {
			return // a lock may be held for ever
		}
		if calls == before {
			t.Errorf("%s reads no clock", c.what)
		}
	}
}
