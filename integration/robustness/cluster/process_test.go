package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"taskledger/integration/robustness/history"
)

// soon bounds what a process does at once on a busy machine.
const soon = 30 * time.Second

func startTestNATS(t *testing.T, in *Namespace) (p *Process, address string) {
	t.Helper()
	return startHeard(t, in, func(Word) {})
}

func startHeard(t *testing.T, in *Namespace, hears func(Word)) (p *Process, address string) {
	t.Helper()
	p, err := StartProcess(Role{Kind: roleNATS, Name: "nats"}, in, t.TempDir(), hears)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-p.ended:
		default:
			_ = p.Kill()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	w, err := p.Await(ctx)
	if err != nil || w.Clients == "" {
		t.Fatalf("%+v, %v", w, err)
	}
	return p, w.Clients
}

func TestProcess_ObeysAndEndsInOrder(t *testing.T) {
	p, _ := startTestNATS(t, nil)
	if _, err := p.Order(t.Context(), Order{Count: true}); err != nil {
		t.Error(err)
	}
	if err := p.Stop(soon); err != nil {
		t.Error(err)
	}
	if _, err := p.Order(t.Context(), Order{Count: true}); err == nil {
		t.Error("an order to a process that has ended is answered")
	}
}

func TestProcess_StandsStillWhilePaused(t *testing.T) {
	p, _ := startTestNATS(t, nil)
	began := history.Now()
	stood, err := p.Pause(t.Context(), 100*time.Millisecond)
	if err != nil || !stood {
		t.Errorf("stood still: %t, %v", stood, err)
	}
	if took := time.Duration(history.Now() - began); took < 100*time.Millisecond {
		t.Errorf("it took %s", took)
	}
	if _, err := p.Order(t.Context(), Order{Count: true}); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

func TestProcess_KilledIsGone(t *testing.T) {
	p, _ := startTestNATS(t, nil)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.log, []byte("first\nlast words\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(soon); err == nil || !strings.Contains(err.Error(), `"last words"`) {
		t.Errorf("a killed process has ended with %v, want its last words", err)
	}
	if _, err := p.Await(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("await: %v, want %v", err, ErrEnded)
	}
}

// An end that nobody ordered is told, and no other.
func TestProcess_TellsThatItDied(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(*Process) error
		told bool
	}{
		"crash": {func(p *Process) error {
			err := p.Signal(syscall.SIGKILL)
			<-p.ended
			return err
		}, true},
		"kill": {(*Process).Kill, false},
		"stop": {func(p *Process) error { return p.Stop(soon) }, false},
	} {
		died := ""
		p, _ := startHeard(t, nil, func(w Word) { died += w.Died })
		if err := row.end(p); err != nil || (died != "") != row.told {
			t.Errorf("%s: %q was told, %v", name, died, err)
		}
	}
}

// A node reaches nothing but the links that begin where it is. That a dial from elsewhere fails would prove nothing and accuse at
// random: another program may listen on the same port there.
func TestProcess_IsInItsNamespace(t *testing.T) {
	if CannotLosePackets() != nil {
		return // TestFault_PacketsLostProvesWhatItDropped asserts that it says why
	}
	in, err := NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	p, address := startTestNATS(t, in)
	err = in.Do(func() error {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return c.Close()
	})
	if err != nil {
		t.Errorf("from its namespace: %v", err)
	}
	here, err1 := os.Readlink("/proc/self/ns/net")
	there, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.cmd.Process.Pid))
	if err := errors.Join(err1, err2); err != nil || here == there {
		t.Errorf("the process is in namespace %s, this one in %s: %v", there, here, err)
	}
}
