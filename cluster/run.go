package cluster

import (
	"context"
	"errors"
	"sync"

	"taskledger/engine"
)

// Run runs a node of the cluster until ctx ends: it opens the cluster, makes the node, runs it, and closes the cluster
// when all has ended. A program that needs its cluster for more than one node or client calls Open instead.
//
// Each function of beside is called in a goroutine of its own once the node is ready. Its context ends when ctx does,
// when the node ends by itself, and when another function has returned. The first function that returns ends the node,
// in order, and Run.
//
// Run returns what Open and engine.Node.Run would return, joined with the errors of functions that returned before
// their context had ended. What a function returns after that does not count: a server that it has closed says so.
// The Log of the node is by default that of Config.
func (c Config) Run(
	ctx context.Context,
	cfg engine.NodeConfig,
	beside ...func(context.Context, *engine.Node) error,
) error {
	if cfg.Log == nil {
		cfg.Log = c.Log
	}
	if err := cfg.Validate(); err != nil { // before the cluster is created
		return err
	}
	opened, err := Open(ctx, c)
	if err != nil {
		return err
	}
	node, err := opened.NewNode(cfg)
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	return errors.Join(runBeside(ctx, node, beside), opened.Close())
}

// runBeside runs a node, and functions once it is ready, until the first of them ends.
func runBeside(ctx context.Context, node *engine.Node, beside []func(context.Context, *engine.Node) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make([]error, len(beside)+1)
	var all sync.WaitGroup
	for i, function := range beside {
		all.Go(func() {
			select {
			case <-node.Ready():
			case <-ctx.Done():
				return
			}
			if err := function(ctx, node); ctx.Err() == nil {
				failed[i] = err
			}
			stop()
		})
	}
	failed[len(beside)] = node.Run(ctx)
	stop()
	all.Wait()
	return errors.Join(failed...)
}
