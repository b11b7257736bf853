//go:build unix

package main_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"taskledger/internal/testkit"
)

// released reports whether the last attempt of a task was given back in order.
func released(t *testing.T, dir, id string) bool {
	t.Helper()
	history := objects(t, must(t, dir, "history", id, "-o", "json"))
	kinds := make([]string, len(history))
	for i, ev := range history {
		kinds[i], _ = ev["kind"].(string)
	}
	return strings.HasSuffix(strings.Join(kinds, " "), "Started Released")
}

// A terminal that is closed sends SIGHUP, twice even: the node drains.
func TestServe_DrainsAtAHangUpAndAtASecondOne(t *testing.T) {
	t.Parallel()
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP) // a program does not inherit what nohup ignores
	t.Cleanup(func() { signal.Stop(caught) })
	dir := t.TempDir()
	n := serve(t, dir, "--grace", "1s")
	must(t, dir, "submit", "sleep", `{"duration":"1h"}`, "--id", "long")
	eventually(t, "it runs", func() bool { return strings.Contains(must(t, dir, "get", "long"), "running") })
	n.signal(syscall.SIGHUP)
	eventually(t, "it drains", func() bool { return strings.Contains(n.stderr.String(), "draining") })
	n.signal(syscall.SIGHUP)
	n.wait(t)
	if !n.cmd.ProcessState.Success() {
		t.Errorf("ended with %s: %s", n.cmd.ProcessState, n.stderr.String())
	}
	serve(t, dir, "--slots", "0")
	if !released(t, dir, "long") {
		t.Error("the attempt was not released")
	}
}

// A hang-up that comes while a node reads its file of collections ends no node: the file is read again.
func TestServe_AHangUpWhileItReadsTheFileOfCollectionsReadsItAgain(t *testing.T) {
	t.Parallel()
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP) // a program does not inherit what nohup ignores
	t.Cleanup(func() { signal.Stop(caught) })
	dir := t.TempDir()
	pipe := filepath.Join(dir, "sync.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	n := &node{cmd: command(context.Background(), dir, "serve", "--sync", pipe), ended: make(chan struct{})}
	n.cmd.Stdout, n.cmd.Stderr = &out, &n.stderr
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(n.ended)
		_ = n.cmd.Wait() // its exit code says it
	}()
	t.Cleanup(func() { n.stop(t) })
	awaited := func() (to *os.File) {
		eventually(t, "the node reads its file", func() bool {
			var err error
			to, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			return err == nil
		})
		return to
	}
	first := awaited()
	n.signal(syscall.SIGHUP)
	_, err := first.WriteString("sources: {}\n")
	if err := errors.Join(err, first.Close()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready", func() bool { return strings.Contains(out.String(), "\nTry") })
	again := awaited()
	_, err = again.WriteString("sources: [\n")
	if err := errors.Join(err, again.Close()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has read the file again", func() bool {
		return strings.Contains(n.stderr.String(), "what was stays")
	})
}

// Whoever starts a node with nohup wants it to outlive the terminal.
func TestServe_HangUpThatIsIgnoredStaysIgnored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := command(context.Background(), dir)
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args = []string{"sh", "-c", `trap "" HUP; exec "$0"`, cmd.Path}
	cmd.Path = sh
	n := start(t, cmd)
	n.signal(syscall.SIGHUP)
	must(t, dir, "submit", "noop", "--wait")
	if log := n.stderr.String(); strings.Contains(log, "draining") {
		t.Errorf("it drains: %s", log)
	}
}

// A shell that is no terminal's has what it runs in the background ignore interrupts: the first one drains a node all
// the same, and the second one ends it.
func TestServe_ASecondInterruptEndsANodeThatWasStartedWithInterruptsIgnored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := command(context.Background(), dir, "serve", "--grace", "1h")
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args = append([]string{"sh", "-c", `trap "" INT; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = sh
	n := start(t, cmd)
	must(t, dir, "submit", "sleep", `{"duration":"1h"}`, "--id", "long")
	eventually(t, "it runs", func() bool { return strings.Contains(must(t, dir, "get", "long"), "running") })
	n.signal(syscall.SIGINT)
	eventually(t, "it drains", func() bool { return strings.Contains(n.stderr.String(), "draining") })
	n.signal(syscall.SIGINT)
	n.wait(t)
	if code := n.cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("ended with %s, want exit code 130: %s", n.cmd.ProcessState, n.stderr.String())
	}
}

// stopWithin tells nodes to stop and kills those that have not in time, as those do who run them.
func stopWithin(t *testing.T, limit time.Duration, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		n.signal(syscall.SIGTERM)
	}
	defer time.AfterFunc(limit, func() {
		for _, n := range nodes {
			n.signal(syscall.SIGKILL)
		}
	}).Stop()
	for _, n := range nodes {
		if state := n.wait(t); !state.Success() {
			t.Errorf("ended with %s: %s", state, n.stderr.String())
		}
	}
}

// trickle makes a request of a node that does not end before the connection does.
func trickle(t *testing.T, n *node, token string) {
	t.Helper()
	address := strings.TrimPrefix(apiOf(t, n), "http://")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	head := "POST /v1/tasks HTTP/1.1\r\nHost: " + address + "\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
	over := make(chan struct{})
	go func() {
		defer close(over)
		for text := head; ; text = " " {
			if _, err := c.Write([]byte(text)); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		c.Close()
		<-over
	})
}

// Nothing that runs is lost by nodes that are stopped in order, again and again: no program that ignores SIGTERM, none
// that heeds it, and no function that returns late. A request that does not end changes nothing of that.
func TestServe_StopsInOrderLoseNothing(t *testing.T) {
	t.Parallel()
	grace, late, limit := 100*time.Millisecond, "1s", timeout
	if testkit.Whole() { // as users have it
		grace, late, limit = 15*time.Second, "9s", 30*time.Second
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "taskledger-data")
	serve(t, dir, "--slots", "0")
	token := must(t, dir, "token", "new", "c", "--role", "submitter")
	ids := []string{"deaf", "obeys", "late"}
	for round := range testkit.Times(1, 6) {
		n := serve(t, dir, "--join", data, "--name", "programs", "--grace", grace.String(), "--exec-allow", "sh",
			"--api", "127.0.0.1:0", "--api-tokens", filepath.Join(data, "tokens.json"))
		functions := startLate(t, data, grace)
		if round == 0 {
			eventually(t, "the functions have a node", func() bool { return strings.Contains(must(t, dir, "nodes"), "functions") })
			must(t, dir, "submit", "exec", `{"program":"sh","args":["-c","trap \"\" TERM; while :; do sleep 1; done"]}`, "--id", "deaf")
			must(t, dir, "submit", "exec", `{"program":"sh","args":["-c","sleep 600"]}`, "--id", "obeys")
			must(t, dir, "submit", "late", `"`+late+`"`, "--id", "late")
		}
		for _, id := range ids {
			eventually(t, id+" runs", func() bool { return strings.Contains(must(t, dir, "get", id), "running") })
		}
		trickle(t, n, token)
		stopWithin(t, limit, n, functions)
	}
	for _, id := range ids {
		if history := must(t, dir, "history", id); !released(t, dir, id) || strings.Contains(history, "Lost") {
			t.Errorf("%s was not released each time: %s", id, history)
		}
	}
}
