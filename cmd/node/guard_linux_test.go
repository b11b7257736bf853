package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// guardOf returns the process that guards the programs of a node.
func guardOf(t *testing.T, n *node) (pid string) {
	t.Helper()
	eventually(t, "there is a guard", func() bool {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", n.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			children, _ := os.ReadFile(file) // a thread may have ended
			for _, child := range strings.Fields(string(children)) {
				name, err := os.ReadFile("/proc/" + child + "/cmdline")
				if err == nil && string(name) == "taskledger\x00guard\x00" {
					pid = child
				}
			}
		}
		return pid != ""
	})
	return pid
}

// over reports whether a process has ended; it may not have been reaped.
func over(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

// grandchildren has a node run a program that starts others. Their pipe ends when all of them have.
func grandchildren(t *testing.T, dir string) (parent string, pipe *os.File) {
	t.Helper()
	path := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "exec >" + path + "; trap '' TERM; sh -c 'sleep 600 & sleep 600; :' & echo $PPID; sleep 600; :"
	must(t, dir, "submit", "exec", fmt.Sprintf(`{"program":"sh","args":["-c",%q]}`, script), "--id", "family")
	pipe, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipe.Close() })
	if err := pipe.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(pipe, &parent); err != nil {
		t.Fatal(err)
	}
	return parent, pipe
}

func wantGone(t *testing.T, pipe *os.File) {
	t.Helper()
	if n, err := pipe.Read(make([]byte, 1)); n != 0 || err == nil || os.IsTimeout(err) {
		t.Errorf("programs of the node live on: %v", err)
	}
}

// What programs of tasks have started ends with the node, in whatever way it ends, and so does what sees to it.
func TestServe_ProgramsEndWithTheNode(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		by    os.Signal
		first func(t *testing.T, n *node) // what happens to it before
	}{
		"killed":                  {by: syscall.SIGKILL},
		"stopped":                 {by: syscall.SIGTERM},
		"killed after its guard":  {by: syscall.SIGKILL, first: killGuard},
		"killed, its binary gone": {by: syscall.SIGKILL, first: removeBinaryAndKillGuard},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := command(context.Background(), dir, "--exec-allow", "sh", "--grace", "100ms")
			cmd.Path = filepath.Join(dir, "taskledger")
			if out, err := exec.Command("cp", binary, cmd.Path).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			cmd.ExtraFiles = []*os.File{os.Stdin} // what the node was started with is closed in the guard, too
			n := start(t, cmd)
			parent, pipe := grandchildren(t, dir)
			if parent != fmt.Sprint(n.cmd.Process.Pid) {
				t.Errorf("the parent of a program is %s, not the node", parent)
			}
			if end.first != nil {
				end.first(t, n)
			}
			guard := guardOf(t, n)
			wantOnlyItsPipe(t, guard)
			n.signal(end.by)
			n.wait(t)
			wantGone(t, pipe)
			eventually(t, "the guard ends", func() bool { return over(guard) })
		})
	}
}

func killGuard(t *testing.T, n *node) {
	t.Helper()
	pid := guardOf(t, n)
	for _, signal := range []string{"-INT", "-KILL"} {
		// One that has not come to ignoring interrupts yet ends with the first signal.
		if out, err := exec.Command("kill", signal, pid).CombinedOutput(); err != nil && !over(pid) {
			t.Fatalf("%v: %s", err, out)
		}
	}
	eventually(t, "another guard is started", func() bool { return strings.Contains(n.stderr.String(), "started again") })
}

func removeBinaryAndKillGuard(t *testing.T, n *node) {
	t.Helper()
	if err := os.Remove(n.cmd.Path); err != nil {
		t.Fatal(err)
	}
	killGuard(t, n)
}

// wantOnlyItsPipe checks that a guard soon holds nothing open that the node has, but for its pipe.
func wantOnlyItsPipe(t *testing.T, guard string) {
	t.Helper()
	eventually(t, "the guard has only its pipe open", func() bool {
		open, err := filepath.Glob("/proc/" + guard + "/fd/*")
		if err != nil || len(open) == 0 {
			t.Fatalf("the guard has %d files open, %v", len(open), err)
		}
		for _, file := range open {
			to, err := os.Readlink(file)
			switch fd := filepath.Base(file); {
			case err != nil: // it was closed
			case fd == "0" && strings.HasPrefix(to, "pipe:"), (fd == "1" || fd == "2") && to == os.DevNull:
			case strings.HasPrefix(to, "anon_inode:"), strings.HasPrefix(to, "/sys/fs/cgroup/"): // those of Go's runtime
			default:
				return false
			}
		}
		return true
	})
}

func TestServe_HasNoGuardWithoutPrograms(t *testing.T) {
	t.Parallel()
	n := serve(t, t.TempDir())
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", n.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if children, _ := os.ReadFile(file); len(children) > 0 { // a thread may have ended
			t.Errorf("the node has children: %s", children)
		}
	}
}
