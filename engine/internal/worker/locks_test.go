package worker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// wantReturn fails the test when f waits. The time is used up only by a failure.
func wantReturn(t *testing.T, what string, f func()) {
	t.Helper()
	returned := make(chan struct{})
	go func() {
		f()
		close(returned)
	}()
	select {
	case <-returned:
	case <-time.After(10 * time.Second):
		t.Errorf("%s waits", what)
	}
}

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
		wantReturn(t, "the end of the attempt", func() { <-ended })
		wantReturn(t, "the answer", func() { w.answer(command.LaneWork, 1) })
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

// calling is a log that is busy with what it was told.
type calling struct {
	slog.Handler
	told chan string
	do   func()
}

// Handle implements slog.Handler.
func (h *calling) Handle(_ context.Context, r slog.Record) error {
	h.do()
	h.told <- r.Message
	return nil
}

// Enabled implements slog.Handler.
func (h *calling) Enabled(context.Context, slog.Level) bool { return true }

func TestLog_IsNotWrittenUnderALock(t *testing.T) {
	w := newFixture(t, 1, nil)
	log := &calling{told: make(chan string, 9), do: func() { w.offers.Unanswered() }}
	w.log.Handler = log
	number := w.offers.Send(w.session, 1, 0, nil)
	wantReturn(t, "the log of offers", func() { w.offers.Answered(1, number, []command.Answer{{Data: events.JSON([]byte("x"))}}) })
	if len(log.told) != 1 {
		t.Errorf("%d records, want 1", len(log.told))
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
		wantReturn(t, c.what, c.do)
		if t.Failed() {
			return // a lock may be held for ever
		}
		if calls == before {
			t.Errorf("%s reads no clock", c.what)
		}
	}
}
