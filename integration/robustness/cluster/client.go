package cluster

import (
	"context"
	"fmt"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/traffic"
)

// Client is a process that makes requests, again and again.
type Client struct {
	Role
	Links

	Claimed bool // by a fault
	started int  // processes so far
	Calls   *traffic.Calls
	Process *Process // nil before the first
}

// NewClient makes a client with ways of its own; it does not run yet.
func (r *Cluster) NewClient(i int) error {
	l, err := r.NewLinks(nil)
	if err != nil {
		return err
	}
	r.Clients = append(r.Clients, &Client{Links: l, Role: Role{Kind: roleClient, Name: fmt.Sprint("client", i+1), Begin: r.Begin, Archive: r.Archives(),
		Seed: r.Settings.Seed, Etcd: l.endpoints(), NATS: l.natsURL(), Shards: Shards, Pad: r.pad(), Few: r.crowded()}})
	return nil
}

// StartClient starts a process of a client, which is a new client to everybody else, and has it make requests.
func (r *Cluster) StartClient(ctx context.Context, c *Client) error {
	c.started++
	c.Source = fmt.Sprint(c.Name, ".", c.started)
	calls := traffic.NewCalls(r.Operations)
	p, err := StartProcess(c.Role, nil, r.Dir, func(w Word) { r.hear(c.Name, calls, w) })
	if err != nil {
		return err
	}
	c.Process, c.Calls = p, calls
	if err := r.awaitServing(ctx, p); err != nil {
		return err
	}
	yes := true
	_, err = p.Order(ctx, Order{Submit: &yes})
	return err
}

// hear takes the word of a process that makes calls.
func (r *Cluster) hear(name string, calls *traffic.Calls, w Word) {
	switch {
	case w.Report != nil:
		r.Executions.Hear(w.Report)
	case w.Call != nil:
		calls.Hear(w.Call)
	case w.Item != nil:
		calls.HearItem(w.Item)
	case w.Damage != "":
		r.Broken(check.Served, "%s: %s", name, w.Damage)
	case w.Died != "":
		r.Broken(check.Clean, "%s %s", name, w.Died)
	}
}

// Ask has the client make a request, and returns when it has.
func (c *Client) Ask(ctx context.Context, r traffic.Request) error {
	_, err := c.Process.Order(ctx, Order{Ask: &r})
	return err
}

// Stop ends the client in order.
func (c *Client) Stop() error {
	if c.Process == nil {
		return nil
	}
	err := c.Process.Stop(StopWithin)
	c.Calls.End()
	return err
}
