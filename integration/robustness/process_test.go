package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/role"
)

// soon bounds what a process does at once on a busy machine.
const soon = 30 * time.Second

func startTestNATS(t *testing.T) *process {
	t.Helper()
	p, err := start(role.Role{Kind: role.NATS, Name: "nats"}, t.TempDir(), func(role.Word) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-p.ended:
		default:
			_ = p.kill()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if w, err := p.await(ctx); err != nil || w.Clients == "" {
		t.Fatalf("%+v, %v", w, err)
	}
	return p
}

func TestProcess_ObeysAndEndsInOrder(t *testing.T) {
	p := startTestNATS(t)
	if _, err := p.order(t.Context(), role.Order{Count: true}); err != nil {
		t.Error(err)
	}
	if err := p.stop(soon); err != nil {
		t.Error(err)
	}
	if _, err := p.order(t.Context(), role.Order{Count: true}); err == nil {
		t.Error("an order to a process that has ended is answered")
	}
}

func TestProcess_StandsStillWhilePaused(t *testing.T) {
	p := startTestNATS(t)
	began := clock.Now()
	stood, err := p.pause(t.Context(), 100*time.Millisecond)
	if err != nil || !stood {
		t.Errorf("stood still: %t, %v", stood, err)
	}
	if took := time.Duration(clock.Now() - began); took < 100*time.Millisecond {
		t.Errorf("it took %s", took)
	}
	if _, err := p.order(t.Context(), role.Order{Count: true}); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

func TestProcess_KilledIsGone(t *testing.T) {
	p := startTestNATS(t)
	if err := p.kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.stop(soon); err == nil {
		t.Error("a killed process has ended in order")
	}
	if _, err := p.await(t.Context()); !errors.Is(err, errEnded) {
		t.Errorf("await: %v, want %v", err, errEnded)
	}
}
