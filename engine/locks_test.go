package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/store"
)

// slowBus is a bus whose first call does not return before meanwhile has.
type slowBus struct {
	store.Bus
	calls     atomic.Int64
	meanwhile func()
}

func (b *slowBus) hold() error {
	if b.calls.Add(1) == 1 {
		b.meanwhile()
	}
	return nil
}

// Publish implements store.Bus.
func (b *slowBus) Publish(string, string, []byte) error { return b.hold() }

// Subscribe implements store.Bus.
func (b *slowBus) Subscribe(context.Context, string, string, func(store.Message)) error {
	return b.hold()
}

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
	p := newPost(t, 1, nil, &script{"b", func(_ context.Context, a Attempt) Outcome {
		go a.Progress(1, 2, "")
		<-entered
		return Outcome{}
	}})
	left := make(chan struct{})
	bus := &slowBus{meanwhile: func() {
		close(entered)
		wantReturn(t, "the end of the attempt", func() { <-ended })
		wantReturn(t, "the answer", func() { answer(p.sender, command.LaneWork, 1) })
		close(left)
	}}
	p.exec.Freed = func() { ended <- struct{}{} }
	p.sender = sender.New(sender.Config{ID: "c-1", Shards: 1, Bus: bus, Now: time.Now, Log: p.log})
	p.node.sender = p.sender
	p.sender.BusChanged(true)
	p.launch("b", Policy{})
	<-left
	if got := bus.calls.Load(); got != 2 {
		t.Errorf("%d batches were sent, want that of the report and that of the outcome", got)
	}
}

// answer brings the answer to a batch of one command.
func answer(s *sender.Sender, lane uint8, number uint64) {
	b := &command.Batch{Lane: lane, Number: number}
	s.OnMessage(store.Message{Data: command.EncodeAnswerMessage(0, b, []command.Answer{{}}, true)})
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
	p := newPost(t, 1, nil, &script{"b", func(context.Context, Attempt) Outcome { return Outcome{} }})
	var tasks []owned
	for i := range maxLoadBytes/(backlogRowBytes+events.MaxBehaviorBytes) + 1 {
		tasks = append(tasks, owned{behavior: fmt.Sprintf("%0*d", events.MaxBehaviorBytes, i)})
	}
	p.owning(0, tasks...)
	p.offers.send(p.member, 1, 0, nil)
	for what, c := range map[string]struct{ write, meanwhile func() }{
		"load": {func() { p.load.message() }, func() { p.load.compare() }},
		"offers": {func() { p.offers.Answered(1, 1, []command.Answer{{Data: events.JSON([]byte("x"))}}) },
			func() { p.offers.unanswered() }},
	} {
		log := &calling{told: make(chan string, 9), do: c.meanwhile}
		p.member.log = slog.New(log)
		p.node.cfg.Log = p.member.log
		wantReturn(t, "the log of "+what, c.write)
		if len(log.told) != 1 {
			t.Errorf("%s: %d records, want 1", what, len(log.told))
		}
	}
}

func TestLoad_ReadsTheClockBeforeItLocks(t *testing.T) {
	p := newPost(t, 1, nil)
	p.node.cfg.Now = func() time.Time {
		p.load.readyAt(0, "", time.Time{})
		return time.Now()
	}
	wantReturn(t, "a message", func() { p.load.message() })
	wantReturn(t, "a comparison", func() { p.load.compare() })
}

// The clock is the caller's, and may ask the engine in its turn.
func TestNow_IsCalledWithoutALock(t *testing.T) {
	p := newPost(t, 1, nil)
	p.view.Store(&store.Membership{Revision: 1, Nodes: map[string]store.NodeInfo{"n-1": {Name: "post", Owner: true}, "n-2": {Name: "unheard"}}})
	p.node.joined = time.Now()
	calls := 0
	look := func() time.Time {
		calls++
		p.inbox.Take(&shard.Mail{})
		p.place.served()
		p.offers.unanswered()
		p.load.readyAt(0, "", time.Time{})
		return time.Now()
	}
	p.node.cfg.Now = look
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"the offers of a new owner", func() { p.offers.ownerChanged(2) }},
		{"offers", func() { p.offers.adjust(p.member, time.Now()) }},
		{"the end of offers", func() { p.offers.withdraw(p.member) }},
		{"placement", func() { p.place.step(t.Context(), time.Now()) }},
		{"a message to the others", func() { p.load.message() }},
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
