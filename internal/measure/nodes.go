package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/cluster"
	"taskledger/engine"
)

const (
	// readyWithin bounds how long a node may take to serve what is its own.
	readyWithin = 30 * time.Second
	// slotsPerTask counts the slots of a node for each task in flight, and leastSlots bounds them from below.
	slotsPerTask = 4
	leastSlots   = 512

	lookAgain = 20 * time.Millisecond
)

// SlotsFor returns the number of slots with which a node never lets one of so many tasks wait.
func SlotsFor(inFlight int) int { return max(leastSlots, slotsPerTask*inFlight) }

// With changes the configuration of a node by what its cluster has, such as the archive.
type With func(cfg *engine.NodeConfig, c *cluster.Cluster)

// Archived lets a node archive its journals and trim them.
func Archived(cfg *engine.NodeConfig, c *cluster.Cluster) { cfg.Archive = c.Archive }

// Node is a member of the cluster under measurement.
type Node struct {
	*engine.Node
	Cluster *cluster.Cluster
	stop    context.CancelFunc
	ended   chan error
}

// Start opens the cluster and starts a node of it, which is ready when Start returns.
func (s *Servers) Start(ctx context.Context, cfg engine.NodeConfig, with ...With) (*Node, error) {
	c, err := s.Open(ctx, "")
	if err != nil {
		return nil, err
	}
	return StartNode(ctx, c, cfg, with...)
}

// StartNode starts a node of a cluster, which is ready when StartNode returns and closes the cluster at its end.
func StartNode(ctx context.Context, c *cluster.Cluster, cfg engine.NodeConfig, with ...With) (*Node, error) {
	cfg.Store, cfg.Bus, cfg.Log = c.Store, c.Bus, Discard
	for _, change := range with {
		change(&cfg, c)
	}
	inner, err := engine.NewNode(cfg)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	n := &Node{
		Node:    inner,
		Cluster: c,
		stop:    stop,
		ended:   make(chan error, 1),
	}
	go func() { n.ended <- inner.Run(run) }()
	late := time.NewTimer(readyWithin)
	defer late.Stop()
	select {
	case <-inner.Ready():
		return n, nil
	case err := <-n.ended:
		n.ended <- err
		return nil, errors.Join(fmt.Errorf("node %s ended", cfg.Name), err, n.Close())
	case <-late.C:
		return nil, errors.Join(fmt.Errorf("node %s is not ready after %s", cfg.Name, readyWithin), n.Close())
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), n.Close())
	}
}

// Close drains the node.
func (n *Node) Close() error {
	n.stop()
	return errors.Join(<-n.ended, n.Cluster.Close())
}

// Crash ends the node like a crash. The error of its Run does not matter any more.
func (n *Node) Crash() error {
	n.Kill()
	<-n.ended
	return n.Cluster.Close()
}

// Settle waits until the nodes serve all shards, and share them evenly.
func Settle(ctx context.Context, nodes ...*Node) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, errors.New("the nodes did not share the shards in time"))
	defer cancel()
	for {
		even, err := evenly(ctx, nodes)
		if even || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lookAgain):
		}
	}
}

// evenly reports whether all shards are served, by none of the nodes more than its share.
func evenly(ctx context.Context, nodes []*Node) (bool, error) {
	shards, err := nodes[0].Operations().Shards(ctx)
	if err != nil {
		return false, err
	}
	owned := map[string]int{}
	for _, s := range shards {
		owned[s.Owner]++
		if s.Problem != "" || owned[s.Owner] > (len(shards)+len(nodes)-1)/len(nodes) {
			return false, nil
		}
	}
	return true, nil
}

// Pair is a cluster of two nodes. Callers ask the embedded one, which runs no task; Other runs them.
type Pair struct {
	*Node
	Other *Node
}

// StartPair starts both nodes, a with no slots and b with slots for so many tasks in flight.
func StartPair(ctx context.Context, s *Servers, inFlight int, a, b engine.NodeConfig, with ...With) (*Pair, error) {
	a.Name, a.Slots = "a", -1
	b.Name, b.Slots = "b", SlotsFor(inFlight)
	first, err := s.Start(ctx, a, with...)
	if err != nil {
		return nil, err
	}
	second, err := s.Start(ctx, b, with...)
	if err != nil {
		return nil, errors.Join(err, first.Close())
	}
	p := &Pair{first, second}
	if err := Settle(ctx, first, second); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close drains both nodes.
func (p *Pair) Close() error { return errors.Join(p.Node.Close(), p.Other.Close()) }
