package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/cmd/node/internal/connect"
	"taskledger/engine"
	"taskledger/store"
)

// readyWithin bounds how long a node may take to serve what is its own.
const readyWithin = 30 * time.Second

// node is a member of the cluster under measurement.
type node struct {
	*engine.Node
	link  *connect.Link
	stop  context.CancelFunc
	ended chan error
}

// startNode returns when the node is ready. cfg gets the link's store and its bus.
func startNode(ctx context.Context, link *connect.Link, cfg engine.NodeConfig) (*node, error) {
	return startNodeOn(ctx, link, link.Store, cfg)
}

// startNodeOn is startNode with a store in front of the link's.
func startNodeOn(ctx context.Context, link *connect.Link, store store.Store, cfg engine.NodeConfig) (*node, error) {
	cfg.Store, cfg.Bus, cfg.Log = store, link.Bus, discard
	inner, err := engine.NewNode(cfg)
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	n := &node{Node: inner, link: link, stop: stop, ended: make(chan error, 1)}
	go func() { n.ended <- inner.Run(run) }()
	late := time.NewTimer(readyWithin)
	defer late.Stop()
	select {
	case <-inner.Ready():
		return n, nil
	case err := <-n.ended:
		n.ended <- err
		return nil, errors.Join(fmt.Errorf("node %s ended", cfg.Name), err, n.close())
	case <-late.C:
		return nil, errors.Join(fmt.Errorf("node %s is not ready after %s", cfg.Name, readyWithin), n.close())
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), n.close())
	}
}

// close drains the node.
func (n *node) close() error {
	n.stop()
	return errors.Join(<-n.ended, n.link.Close())
}

// kill ends the node like a crash. What its Run returns does not matter: it is dead.
func (n *node) kill() error {
	n.Kill()
	<-n.ended
	return n.link.Close()
}

// settle waits until the nodes share all shards evenly.
func settle(ctx context.Context, nodes ...*node) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, errors.New("the nodes did not share the shards in time"))
	defer cancel()
	return nodes[0].link.AwaitEven(ctx, len(nodes))
}
