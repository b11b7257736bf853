package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/traffic"
)

// Node is a process that runs tasks, again and again.
type Node struct {
	Role
	Links

	Calls   *traffic.Calls
	Claimed bool // by a fault

	mu       sync.Mutex
	process  *Process // nil before the first
	session  string
	standing []*Order // that every process of the node is given when it is ready
}

// Running is the present process, or the last one; nil before the first.
func (n *Node) Running() *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// SessionID returns the id of the present session, or of the last one.
func (n *Node) SessionID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.session
}

// Joined notes the session that the node has begun.
func (n *Node) Joined(session string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.session = session
}

// StartNode starts the process of a node, and does not wait until it is ready.
func (r *Cluster) StartNode(n *Node) error {
	n.Calls = traffic.NewCalls(r.Operations)
	calls := n.Calls
	p, err := StartProcess(n.Role, n.In, r.Dir, func(w Word) {
		if w.Session != "" {
			n.Joined(w.Session)
			return
		}
		r.hear(n.Name, calls, w)
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process = p
	return nil
}

// ErrIdle says that a process does not serve although nothing keeps it from that.
var ErrIdle = errors.New("a process does not serve")

// awaitServing waits until a process serves.
func (r *Cluster) awaitServing(ctx context.Context, p *Process) error {
	ready, cancel := context.WithTimeout(ctx, StartWithin)
	defer cancel()
	if _, err := p.Await(ready); err != nil {
		if ctx.Err() == nil {
			r.Broken(check.Ended, "it does not serve: %v", err)
		}
		return fmt.Errorf("%w: %w", ErrIdle, err)
	}
	return nil
}

// awaitNode waits until a node serves, and has it submit and obey the standing orders.
func (r *Cluster) awaitNode(ctx context.Context, n *Node) error {
	if err := r.awaitServing(ctx, n.Running()); err != nil {
		return err
	}
	submit := !r.Settings.Silent
	_, err := n.Running().Order(ctx, Order{Submit: &submit})
	for _, o := range n.stands() {
		_, failed := n.Running().Order(ctx, *o)
		err = errors.Join(err, failed)
	}
	return err
}

func (n *Node) stands() []*Order {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.standing)
}

// Stand gives the process of a node, and every later one until it is withdrawn, an order.
func (n *Node) Stand(ctx context.Context, o *Order) error {
	n.mu.Lock()
	n.standing = append(n.standing, o)
	n.mu.Unlock()
	_, err := n.Running().Order(ctx, *o)
	return UnlessReplaced(err)
}

// Withdraw ends a standing order by another one, and returns the count that is told of it.
func (n *Node) Withdraw(ctx context.Context, o *Order, end Order) (int64, error) {
	n.mu.Lock()
	n.standing = slices.DeleteFunc(n.standing, func(other *Order) bool { return other == o })
	n.mu.Unlock()
	count, err := n.Running().Order(ctx, end)
	return count, UnlessReplaced(err)
}

// UnlessReplaced leaves out that a process ends, or has ended: another fault replaces it.
func UnlessReplaced(err error) error {
	if errors.Is(err, ErrEnded) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// InFlight counts the acknowledged tasks that have not ended, as far as functions tell.
func (r *Cluster) InFlight() int { return r.Operations.InFlight(r.Executions.IsOver) }

// NewNode makes a node with ways of its own, in a namespace of its own where there can be one; it does not run yet.
func (r *Cluster) NewNode(i int) (err error) {
	var in *Namespace
	if CannotLosePackets() == nil {
		if in, err = NewNamespace(); err != nil {
			return err
		}
	}
	l, err := r.NewLinks(in)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	name := fmt.Sprint("node", i+1)
	r.Nodes = append(r.Nodes, &Node{Links: l, Role: Role{Kind: roleNode, Name: name, Begin: r.Begin, Seed: r.Settings.Seed + uint64(i),
		Etcd: l.endpoints(), NATS: l.natsURL(), Shards: Shards, Slots: r.slotsOf(i), Few: r.crowded(), TTL: TTL, Archive: r.Archives(), FaultyStore: r.Needs.Has(NeedWrites),
		Limits: r.Limits()}})
	return nil
}

// Restart starts the process of a node again and waits until it serves.
func (r *Cluster) Restart(ctx context.Context, n *Node) error {
	return errors.Join(r.StartNode(n), r.awaitNode(ctx, n))
}
