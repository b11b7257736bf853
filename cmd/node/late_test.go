package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/task"
)

// lateRole makes this test binary a node, of a program that has functions, on the data directory of another one.
const lateRole = "TASKLEDGER_TEST_LATE"

// startLate starts a node that runs the behavior late: it returns so long after its context has ended as its parameter
// says.
func startLate(t *testing.T, data string, grace time.Duration) *node {
	t.Helper()
	n := &node{cmd: exec.Command(os.Args[0], grace.String()), ended: make(chan struct{})}
	n.cmd.Env = append(os.Environ(), lateRole+"="+data)
	n.cmd.Stderr = &n.stderr
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(n.ended)
		_ = n.cmd.Wait() // its exit code says it
	}()
	t.Cleanup(func() { n.stop(t) })
	return n
}

// runLate is the process that startLate starts.
func runLate(data, grace string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := cluster.Open(ctx, cluster.Config{Dir: data})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	within, err := time.ParseDuration(grace)
	if err != nil {
		return err
	}
	late := behaviors.Define[string, string]("late", nil).Bind(func(ctx context.Context, by string) (string, error) {
		after, err := time.ParseDuration(by)
		if err != nil {
			return "", behaviors.Cancel(err)
		}
		<-ctx.Done()
		time.Sleep(after)
		return "", ctx.Err()
	})
	n, err := c.NewNode(engine.NodeConfig{Name: "functions", Grace: within, Behaviors: []task.Behavior{late}})
	if err != nil {
		return err
	}
	if err := n.Run(ctx); err != nil {
		return fmt.Errorf("run the node: %w", err)
	}
	return nil
}
