//go:build unix

package main_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// logTo starts a node whose standard error is the pipe.
func logTo(t *testing.T, pipe *os.File, dir string, args ...string) *node {
	t.Helper()
	cmd := command(context.Background(), dir, args...)
	cmd.Stderr = pipe
	return start(t, cmd)
}

// Whoever reads the log may stop reading: the node tells outcomes, keeps its session and ends in order all the same.
func TestServe_WaitsForNobodyWhoReadsItsLog(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := w.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("fill the pipe: %v", err)
	}
	dir := t.TempDir()
	n := logTo(t, w, dir, "--ttl", "3s", "--grace", "1s", "--exec-allow", "true", "--log-level", "debug")
	if got := run(t, dir, "submit", "exec", `{"program":"nosuch"}`, "--wait"); got.code != 1 {
		t.Errorf("a task that fails for good: %+v", got)
	}
	must(t, dir, "submit", "noop", "--wait")
	n.stop(t)
	if !n.cmd.ProcessState.Success() {
		t.Errorf("ended with %s", n.cmd.ProcessState)
	}
}

// A node goes on without its log, and ends in order, when whoever read it is gone.
func TestServe_RunsOnWhenNobodyReadsItsLogAnyMore(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n := logTo(t, w, dir, "--grace", "1s", "--exec-allow", "sh", "--log-level", "debug")
	w.Close()
	r.Close()
	if got := run(t, dir, "submit", "exec", `{"program":"nosuch"}`, "--wait"); got.code != 1 {
		t.Errorf("a task that fails for good: %+v", got)
	}
	// Programs that the node starts end by the signal, as they do elsewhere.
	piped := run(t, dir, "submit", "exec", `{"program":"sh","args":["-c","(yes; echo $? >&2) | head -1 >/dev/null"]}`, "--wait", "-o", "json")
	if piped.code != 0 || !strings.Contains(piped.out, "141") {
		t.Errorf("a pipe in a program: %+v", piped)
	}
	n.stop(t)
	if !n.cmd.ProcessState.Success() {
		t.Errorf("ended with %s", n.cmd.ProcessState)
	}
}

// The last line says why a node ends, and is written before it does.
func TestServe_TheLastLineIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, dir, "serve", "--data", "file"); r.code == 0 || strings.Count(r.err, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	var log bytes.Buffer
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	n := logTo(t, w, dir)
	w.Close()
	n.signal(syscall.SIGTERM)
	if _, err := io.Copy(&log, r); err != nil {
		t.Fatal(err)
	}
	n.wait(t)
	if !strings.Contains(log.String(), "draining") {
		t.Errorf("the log: %s", &log)
	}
}
