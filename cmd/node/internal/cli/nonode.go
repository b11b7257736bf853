package cli

import (
	"context"
	"fmt"
	"time"

	"taskledger/cmd/node/internal/infiles"
	"taskledger/store"
	"taskledger/task"
)

const (
	// tellNoNodeAfter is longer than it takes until a command that does not wait is told that no node is alive.
	tellNoNodeAfter = 4 * time.Second
	// tellNoNodeEvery is the longest time between two looks for nodes.
	tellNoNodeEvery = time.Minute
)

// nodes tells which nodes are alive.
type nodes interface {
	Nodes(ctx context.Context) ([]store.NodeInfo, error)
}

// tellNoNode says once on standard error when an outcome is waited for while no node is alive. stop ends that.
func (a *app) tellNoNode(ctx context.Context, client nodes) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause := tellNoNodeAfter; ; pause = min(2*pause, tellNoNodeEvery) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			if nodes, err := client.Nodes(ctx); err == nil && len(nodes) == 0 {
				fmt.Fprintf(a.Err, "%s: waiting for a node: %v; start one with: %s\n", a.Name, task.ErrNoNode, a.startNode())
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// startNode returns the command that starts a node of the cluster that is asked.
func (a *app) startNode() string {
	return a.serveOn("join")
}

// serveOn returns the command that serves on the directory that is asked, which the flag names: data or join.
func (a *app) serveOn(flag string) string {
	args := []string{"serve"}
	if holds, err := infiles.Holds(a.access.dir); err == nil && holds && len(a.access.addresses.Etcd) == 0 {
		args, flag = append(args, "--store", storeInFiles), "data"
	}
	return a.command(append(args, a.access.given(flag)...)...)
}
