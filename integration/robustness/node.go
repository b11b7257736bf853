package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/namespace"
	"taskledger/integration/robustness/process"
	"taskledger/integration/robustness/record"
	"taskledger/integration/robustness/role"
)

// node is a process that runs tasks, again and again.
type node struct {
	role.Role
	links

	calls   *record.Calls
	claimed bool // by a fault

	mu       sync.Mutex
	process  *process.Process // nil before the first
	session  string
	standing []*role.Order // that every process of the node is given when it is ready
}

// running is the present process, or the last one; nil before the first.
func (n *node) running() *process.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// sessionID is that of the present session, or of the last one.
func (n *node) sessionID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.session
}

// startNode starts the process of a node, and does not wait until it is ready.
func (r *run) startNode(n *node) error {
	n.calls = record.NewCalls(r.done)
	calls := n.calls
	p, err := process.Start(n.Role, n.in, r.dir, func(w role.Word) {
		switch {
		case w.Session != "":
			n.mu.Lock()
			n.session = w.Session
			n.mu.Unlock()
		case w.Report != nil:
			r.oracle.Hear(w.Report)
		case w.Call != nil:
			calls.Hear(w.Call)
		case w.Died != "":
			r.broken(check.Clean, "%s %s", n.Name, w.Died)
		}
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process = p
	return nil
}

// errIdle says that a process does not serve although nothing keeps it from that.
var errIdle = errors.New("a process does not serve")

// awaitServing waits until a process serves.
func (r *run) awaitServing(ctx context.Context, p *process.Process) error {
	ready, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if _, err := p.Await(ready); err != nil {
		if ctx.Err() == nil {
			r.broken(check.Ended, "it does not serve: %v", err)
		}
		return fmt.Errorf("%w: %w", errIdle, err)
	}
	return nil
}

// awaitNode waits until a node serves, and has it submit and obey the standing orders.
func (r *run) awaitNode(ctx context.Context, n *node) error {
	if err := r.awaitServing(ctx, n.running()); err != nil {
		return err
	}
	submit := !r.settings.silent
	_, err := n.running().Order(ctx, role.Order{Submit: &submit})
	for _, o := range n.stands() {
		_, failed := n.running().Order(ctx, *o)
		err = errors.Join(err, failed)
	}
	return err
}

func (n *node) stands() []*role.Order {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.standing)
}

// stand gives the process of a node, and every later one until it is withdrawn, an order.
func (n *node) stand(ctx context.Context, o *role.Order) error {
	n.mu.Lock()
	n.standing = append(n.standing, o)
	n.mu.Unlock()
	_, err := n.running().Order(ctx, *o)
	return unlessReplaced(err)
}

// withdraw ends a standing order by another one, and returns the count that is told of it.
func (n *node) withdraw(ctx context.Context, o *role.Order, end role.Order) (int64, error) {
	n.mu.Lock()
	n.standing = slices.DeleteFunc(n.standing, func(other *role.Order) bool { return other == o })
	n.mu.Unlock()
	count, err := n.running().Order(ctx, end)
	return count, unlessReplaced(err)
}

// unlessReplaced leaves out that a process ends, or has ended: another fault replaces it.
func unlessReplaced(err error) error {
	if errors.Is(err, process.ErrEnded) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// inFlight counts the acknowledged tasks that have not ended, as far as functions tell.
func (r *run) inFlight() int { return r.done.InFlight(r.oracle.IsOver) }

// newNode makes a node with ways of its own, in a namespace of its own where there can be one; it does not run yet.
func (r *run) newNode(i int) (err error) {
	var in *namespace.Namespace
	if namespace.Cannot() == nil {
		if in, err = namespace.New(); err != nil {
			return err
		}
	}
	l, err := r.newLinks(in)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	name := fmt.Sprint("node", i+1)
	r.nodes = append(r.nodes, &node{links: l, Role: role.Role{Kind: role.Node, Name: name, Begin: r.begin, Seed: r.settings.seed + uint64(i),
		Etcd: l.endpoints(), NATS: l.natsURL(), Shards: record.Shards, Slots: r.slotsOf(i), Few: r.crowded(), TTL: ttl, Archive: r.archives(), FaultyStore: r.plan.needs(needWrites),
		Limits: r.limits()}})
	return nil
}
