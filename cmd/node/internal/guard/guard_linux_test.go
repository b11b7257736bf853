package guard_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/cmd/node/internal/guard"
)

// TestMain is the guard, too, when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guard.Command {
		guard.Serve(os.Stdin)
		return
	}
	goleak.VerifyTestMain(m)
}

// timeout is used up only by a failure.
const timeout = 30 * time.Second

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(timeout); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", timeout, what)
		}
	}
}

// guards are the children of this process that are guards.
func guards(t *testing.T) (all []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		children, _ := os.ReadFile(file) // a thread may have ended
		for _, child := range strings.Fields(string(children)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err == nil && string(line) == "taskledger\x00guard\x00" {
				all = append(all, pid)
			}
		}
	}
	return all
}

func theGuard(t *testing.T) (pid int) {
	t.Helper()
	eventually(t, "there is one guard", func() bool {
		all := guards(t)
		if len(all) == 1 {
			pid = all[0]
		}
		return len(all) == 1
	})
	return pid
}

// program is a process group that runs until it is killed.
func program(t *testing.T) (group int, ended func() bool) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = cmd.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have been killed
		<-over
	})
	return cmd.Process.Pid, func() bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	}
}

// log can be read while it is written.
type log struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func started(t *testing.T) (*guard.Guard, func() string) {
	t.Helper()
	var l log
	g, err := guard.Start(slog.New(slog.NewTextHandler(&l, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return g, func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.all.String()
	}
}

func TestGuard_KillsAtItsEndWhatIsHeldAlone(t *testing.T) {
	g, log := started(t)
	held, heldEnded := program(t)
	released, releasedEnded := program(t)
	g.Hold(held)
	g.Hold(released)()
	g.Close()
	eventually(t, "what was held ends", heldEnded)
	if releasedEnded() {
		t.Error("what had been released ended, too")
	}
	if left := guards(t); len(left) > 0 || log() != "" {
		t.Errorf("processes %v are left, the log says %q", left, log())
	}
}

// A process that ends, or that reads no more, is followed by another one, and what is held goes on.
func TestGuard_AProcessThatFailsIsFollowedByOneThatKnowsAll(t *testing.T) {
	for name, fail := range map[string]func(*guard.Guard, int){
		"killed": func(_ *guard.Guard, pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) },
		"stopped": func(g *guard.Guard, pid int) {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			for slices.Contains(guards(t), pid) {
				for range 1000 {
					g.Hold(1 << 22)() // there is no such group
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, log := started(t)
			group, ended := program(t)
			g.Hold(group)
			first := theGuard(t)
			fail(g, first)
			eventually(t, "another one is started", func() bool {
				return theGuard(t) != first && strings.Contains(log(), "started again")
			})
			if ended() {
				t.Error("what was held was ended")
			}
			g.Close()
			eventually(t, "what was held ends", ended)
			if left := guards(t); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

func TestGuard_SignalsThatStopANodeLeaveItAlone(t *testing.T) {
	g, log := started(t)
	group, ended := program(t)
	g.Hold(group)
	pid := theGuard(t)
	// It ignores signals once it runs.
	eventually(t, "it ignores signals", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, ignored, _ := strings.Cut(string(status), "SigIgn:\t")
		mask, err := strconv.ParseUint(strings.Fields(ignored)[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		wanted := uint64(0)
		for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
			wanted |= 1 << (s - 1)
		}
		return mask&wanted == wanted
	})
	if session, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0); errno != 0 || int(session) != pid {
		t.Errorf("its session is %d, %v", session, errno)
	}
	g.Close()
	eventually(t, "what was held ends", ended)
	if log() != "" {
		t.Errorf("the log says %q", log())
	}
}
