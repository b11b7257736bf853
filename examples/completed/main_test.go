package main_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/engine/embedded"
	"taskledger/task"
)

// build returns the path of the program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "completed")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

func TestCompleted_WithoutArgumentsSaysHowItIsUsed(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), build(t)).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || !strings.HasPrefix(string(out), "usage: ") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestCompleted_PrintsOutcomesOfOtherProcesses(t *testing.T) {
	program := build(t)
	node, err := embedded.Start(t.Context(), "", builtin.Noop())
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	subscriber := exec.CommandContext(t.Context(), program, node.NATSURL(), node.NATSNKey())
	subscriber.Stderr = os.Stderr
	out, err := subscriber.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := subscriber.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		lines <- line
	}()
	if got, want := firstLine(t, node, lines), "greeting noop SUCCESS\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if err := subscriber.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = subscriber.Wait() // it was killed
}

// firstLine runs a task again and again until the subscriber, which nobody knows to be listening, has told of it.
func firstLine(t *testing.T, node *embedded.Node, lines <-chan string) string {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		f, err := node.Submit(ctx, builtin.Noop(), nil, task.SubmitOptions{ID: "greeting"})
		if err == nil {
			_, err = f.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case line := <-lines:
			return line
		case <-time.After(50 * time.Millisecond):
		}
		if _, err := node.Operations().Retry(ctx, "greeting"); err != nil {
			t.Fatal(err)
		}
	}
}
