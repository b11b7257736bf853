package engine

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/store"
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
	p := newPost(t)
	var tasks []owned
	for i := range maxLoadBytes/(backlogRowBytes+events.MaxBehaviorBytes) + 1 {
		tasks = append(tasks, owned{behavior: fmt.Sprintf("%0*d", events.MaxBehaviorBytes, i)})
	}
	p.owning(0, tasks...)
	log := &calling{told: make(chan string, 9), do: func() { p.load.compare() }}
	p.member.log = slog.New(log)
	wantReturn(t, "the log of load", func() { p.load.message() })
	if len(log.told) != 1 {
		t.Errorf("%d records, want 1", len(log.told))
	}
}

func TestLoad_ReadsTheClockBeforeItLocks(t *testing.T) {
	p := newPost(t)
	p.node.cfg.Now = func() time.Time {
		p.load.readyAt(0, "", time.Time{})
		return time.Now()
	}
	wantReturn(t, "a message", func() { p.load.message() })
	wantReturn(t, "a comparison", func() { p.load.compare() })
}

// The clock is the caller's, and may ask the engine in its turn.
func TestNow_IsCalledWithoutALock(t *testing.T) {
	p := newPost(t)
	p.view.Store(&store.Membership{Revision: 1, Nodes: map[string]store.NodeInfo{"n-1": {Name: "post", Owner: true}, "n-2": {Name: "unheard"}}})
	p.node.joined = time.Now()
	in := shard.NewInbox()
	p.sender.ServeHere(0, in)
	calls := 0
	look := func() time.Time {
		calls++
		in.Take(&shard.Mail{})
		p.place.served()
		p.offers.Unanswered()
		p.load.readyAt(0, "", time.Time{})
		return time.Now()
	}
	p.node.cfg.Now = look
	for _, c := range []struct {
		what string
		do   func()
	}{
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
