package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/namespace"
	"taskledger/integration/robustness/role"
)

// soon bounds what a process does at once on a busy machine.
const soon = 30 * time.Second

func startTestNATS(t *testing.T, in *namespace.Namespace) (p *process, address string) {
	t.Helper()
	return startHeard(t, in, func(role.Word) {})
}

func startHeard(t *testing.T, in *namespace.Namespace, hears func(role.Word)) (p *process, address string) {
	t.Helper()
	p, err := start(role.Role{Kind: role.NATS, Name: "nats"}, in, t.TempDir(), hears)
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
	w, err := p.await(ctx)
	if err != nil || w.Clients == "" {
		t.Fatalf("%+v, %v", w, err)
	}
	return p, w.Clients
}

func TestProcess_ObeysAndEndsInOrder(t *testing.T) {
	p, _ := startTestNATS(t, nil)
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
	p, _ := startTestNATS(t, nil)
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
	p, _ := startTestNATS(t, nil)
	if err := p.kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.log, []byte("first\nlast words\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.stop(soon); err == nil || !strings.Contains(err.Error(), `"last words"`) {
		t.Errorf("a killed process has ended with %v, want its last words", err)
	}
	if _, err := p.await(t.Context()); !errors.Is(err, errEnded) {
		t.Errorf("await: %v, want %v", err, errEnded)
	}
}

// An end that nobody ordered is told, and no other.
func TestProcess_TellsThatItDied(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(*process) error
		told bool
	}{
		"crash": {func(p *process) error {
			err := p.signal(syscall.SIGKILL)
			<-p.ended
			return err
		}, true},
		"kill": {(*process).kill, false},
		"stop": {func(p *process) error { return p.stop(soon) }, false},
	} {
		died := ""
		p, _ := startHeard(t, nil, func(w role.Word) { died += w.Died })
		if err := row.end(p); err != nil || (died != "") != row.told {
			t.Errorf("%s: %q was told, %v", name, died, err)
		}
	}
}

// A node that is replaced while an order stands is given it, too; what is withdrawn is forgotten.
func TestNode_KeepsStandingOrders(t *testing.T) {
	p, _ := startTestNATS(t, nil)
	n := &node{process: p}
	order := role.Order{Count: true}
	if err := n.stand(t.Context(), &order); err != nil || len(n.stands()) != 1 {
		t.Errorf("%d orders stand, %v", len(n.stands()), err)
	}
	if err := p.stop(soon); err != nil {
		t.Fatal(err)
	}
	if err := n.stand(t.Context(), &role.Order{}); err != nil { // its next process will hear it
		t.Errorf("while it is replaced: %v", err)
	}
	if _, err := n.withdraw(t.Context(), &order, order); err != nil || len(n.stands()) != 1 {
		t.Errorf("%d orders stand, %v", len(n.stands()), err)
	}
}

// A node reaches nothing but the links that begin where it is.
func TestProcess_IsInItsNamespace(t *testing.T) {
	if namespace.Cannot() != nil {
		return // TestFault_PacketsLostProvesWhatItDropped asserts that it says why
	}
	in, err := namespace.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	_, address := startTestNATS(t, in)
	for _, where := range []*namespace.Namespace{in, nil} {
		err := where.Do(func() error {
			c, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			return c.Close()
		})
		if (err == nil) != (where == in) {
			t.Errorf("from its namespace: %t, dial: %v", where == in, err)
		}
	}
}
