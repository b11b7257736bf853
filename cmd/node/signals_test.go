//go:build unix

package main_test

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
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

// Nothing that runs is lost by a node that is stopped in order, again and again: a program that ignores SIGTERM, and
// one that heeds it. What takes longer is in the tests of package engine.
func TestServe_StopsInOrderLoseNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stop := func(n *node) {
		began := time.Now()
		n.stop(t)
		if !n.cmd.ProcessState.Success() {
			t.Errorf("ended with %s after %s: %s", n.cmd.ProcessState, time.Since(began), n.stderr.String())
		}
	}
	for round := range 2 {
		n := serve(t, dir, "--grace", "100ms", "--exec-allow", "sh")
		if round == 0 {
			must(t, dir, "submit", "exec", `{"program":"sh","args":["-c","trap \"\" TERM; while :; do sleep 1; done"]}`, "--id", "deaf")
			must(t, dir, "submit", "exec", `{"program":"sh","args":["-c","sleep 600"]}`, "--id", "obeys")
		}
		for _, id := range []string{"deaf", "obeys"} {
			eventually(t, id+" runs", func() bool { return strings.Contains(must(t, dir, "get", id), "running") })
		}
		stop(n)
	}
	serve(t, dir, "--slots", "0")
	for _, id := range []string{"deaf", "obeys"} {
		if !released(t, dir, id) {
			t.Errorf("%s was not released: %s", id, must(t, dir, "history", id))
		}
	}
}
