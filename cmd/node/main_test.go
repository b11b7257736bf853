package main_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/internal/testkit"
)

// binary is the program under test, as users build it.
var binary string

func TestMain(m *testing.M) {
	if data := os.Getenv(lateRole); data != "" {
		if err := runLate(data, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.AtOnce(4)
	dir, err := os.MkdirTemp("", "taskledger-test-")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "taskledger")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Printf("build: %v\n%s", err, out)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// timeout bounds what must come true sooner or later, on a slow and busy machine. It is used up only by a failure.
const timeout = 2 * time.Minute

// result holds the exit code and the output of a finished command.
type result struct {
	code     int
	out, err string
}

// command prepares the program in dir, without settings from this process's environment.
func command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TASKLEDGER_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "TASKLEDGER_API=off") // its port would be the same in every test
	return cmd
}

// finish runs the command to its end.
func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("%s: %v", cmd, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// run runs the program in dir.
func run(t *testing.T, dir string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	defer cancel()
	return finish(t, command(ctx, dir, args...))
}

// must runs the program, which must succeed, and returns what it printed, without the line's end.
func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	r := run(t, dir, args...)
	if r.code != 0 {
		t.Fatalf("%q: exit code %d: %s", args, r.code, r.err)
	}
	return strings.TrimSuffix(r.out, "\n")
}

// node is a serving process.
type node struct {
	cmd      *exec.Cmd
	printed  []string // before it was ready
	commands []string // that it offers
	stderr   lockedBuffer
	ended    chan struct{}
}

// storeVariable names a variable for whoever runs the tests: with files, nodes that would have etcd inside have their
// store in files.
const storeVariable = "TESTED_STORE"

// serve starts a node in dir and returns when it is ready. It stops with the test.
func serve(t *testing.T, dir string, args ...string) *node {
	t.Helper()
	elsewhere := func(flag string) bool { return slices.Contains([]string{"--etcd", "--join", "--store"}, flag) }
	if os.Getenv(storeVariable) == "files" && !slices.ContainsFunc(args, elsewhere) {
		args = append(slices.Clip(args), "--store", "files")
	}
	return start(t, command(context.Background(), dir, args...))
}

// lockedBuffer can be read while a process writes to it.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

func start(t *testing.T, cmd *exec.Cmd) *node {
	t.Helper()
	n := &node{cmd: cmd, ended: make(chan struct{})}
	if cmd.Stderr == nil {
		cmd.Stderr = &n.stderr
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan bool, 1)
	go func() {
		defer close(n.ended)
		ready <- n.read(bufio.NewScanner(out))
		_ = cmd.Wait() // its exit code says it
	}()
	t.Cleanup(func() { n.stop(t) })
	select {
	case ok := <-ready:
		if !ok {
			<-n.ended
			t.Fatalf("%s: ended with %s", cmd, n.stderr.String())
		}
	case <-time.After(timeout):
		_ = cmd.Process.Kill()
		<-n.ended
		t.Fatalf("%s: not ready after %s: %s", cmd, timeout, n.stderr.String())
	}
	return n
}

// read returns true with the empty line after the commands; it goes on reading nothing, the node prints no more.
func (n *node) read(lines *bufio.Scanner) bool {
	offering := false
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "Try"):
			offering = true
		case offering && line == "":
			return true
		case offering:
			n.commands = append(n.commands, strings.TrimSpace(line))
		default:
			n.printed = append(n.printed, line)
		}
	}
	return false
}

// signal sends a signal; the node may have ended already.
func (n *node) signal(s os.Signal) { _ = n.cmd.Process.Signal(s) }

// wait returns the state of the ended process.
func (n *node) wait(t *testing.T) *os.ProcessState {
	t.Helper()
	select {
	case <-n.ended:
	case <-time.After(timeout):
		n.dump()
		t.Errorf("did not end within %s: %s", timeout, n.stderr.String())
	}
	return n.cmd.ProcessState
}

// dumpWithin bounds how long a process may take to print its goroutines.
const dumpWithin = 10 * time.Second

// dump ends the process, which says on standard error what each of its goroutines waits for.
func (n *node) dump() {
	n.signal(syscall.SIGQUIT)
	select {
	case <-n.ended:
	case <-time.After(dumpWithin):
		n.signal(os.Kill)
		<-n.ended
	}
}

func (n *node) stop(t *testing.T) {
	t.Helper()
	n.signal(syscall.SIGTERM)
	n.wait(t)
}

// eventually waits until ok, which is asked again and again.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(timeout)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %s: %s", timeout, what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
