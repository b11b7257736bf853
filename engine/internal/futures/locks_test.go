package futures_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/futures"
	"taskledger/engine/internal/outcome"
	"taskledger/internal/testkit"
	"taskledger/store"
)

// slow is a bus and a sender whose first call does not return before meanwhile has.
type slow struct {
	store.Bus
	calls     int
	meanwhile func()
}

func (s *slow) hold() {
	if s.calls++; s.calls == 1 {
		s.meanwhile()
	}
}

// Subscribe implements store.Bus.
func (s *slow) Subscribe(context.Context, string, string, func(store.Message)) error {
	s.hold()
	return nil
}

// Inquire implements futures.Sender.
func (s *slow) Inquire(int, command.Command, func(command.Answer, error)) { s.hold() }

// BusAway implements futures.Sender.
func (s *slow) BusAway(int) bool { return false }

// Closed implements futures.Sender.
func (s *slow) Closed() bool { return false }

// A bus that takes nothing more for a while holds up who asks over it. What resolves a future comes from handlers
// that must not wait.
func TestFuture_IsResolvedWhileABusHoldsUpItsQuestion(t *testing.T) {
	for name, begin := range map[string]func(*futures.Future){
		"done": func(f *futures.Future) { f.Done() },
		"wait": func(f *futures.Future) { _, _ = wait(context.Background(), f) },
		"then": func(f *futures.Future) { f.Then(func([]byte, error) {}) },
	} {
		for call, bus := range map[string]bool{"subscribe": true, "publish": false} {
			t.Run(name+" in "+call, func(t *testing.T) {
				s := &slow{}
				cfg := futures.Config{Sender: s, Shards: 1, Log: slog.New(slog.DiscardHandler)}
				if bus {
					cfg.Bus = s
				}
				w := &waiters{T: t, Registry: futures.New(cfg)}
				f := w.future(lifeOne, 1)
				s.meanwhile = func() {
					testkit.WantReturn(t, "an outcome", func() { w.Deliver(0, []outcome.Outcome{ended(lifeOne, 1)}) })
					testkit.WantReturn(t, "another look", func() { w.wantResolved(f, "1", nil) })
				}
				begin(f)
				w.wantResolved(f, "1", nil)
				w.Close()
			})
		}
	}
}

func TestFuture_ClosedWhileItIsAddedIsNotRegistered(t *testing.T) {
	w := newWaiters(t)
	f := w.future(lifeOne, 1)
	release := w.Hold(0) // it cannot be added yet
	added := make(chan struct{})
	go func() {
		f.Done()
		close(added)
	}()
	for !f.IsWatched() {
		runtime.Gosched()
	}
	f.End() // Close, which finds nothing to remove
	release()
	<-added
	if w.Open() != 0 {
		t.Error("a closed future is registered")
	}
}
