package main

import (
	"context"
	"fmt"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/process"
	"taskledger/integration/robustness/record"
	"taskledger/integration/robustness/role"
	"taskledger/integration/robustness/traffic"
)

// client is a process that makes requests, again and again.
type client struct {
	role.Role
	links

	claimed bool // by a fault
	started int  // processes so far
	calls   *record.Calls
	process *process.Process // nil before the first
}

// newClient makes a client with ways of its own; it does not run yet.
func (r *run) newClient(i int) error {
	l, err := r.newLinks(nil)
	if err != nil {
		return err
	}
	r.clients = append(r.clients, &client{links: l, Role: role.Role{Kind: role.Client, Name: fmt.Sprint("client", i+1), Begin: r.begin, Archive: r.archives(),
		Seed: r.settings.seed, Etcd: l.endpoints(), NATS: l.natsURL(), Shards: record.Shards, Pad: r.pad(), Few: r.crowded()}})
	return nil
}

// startClient starts a process of a client, which is a new client to everybody else, and has it make requests.
func (r *run) startClient(ctx context.Context, c *client) error {
	c.started++
	c.Source = fmt.Sprint(c.Name, ".", c.started)
	calls := record.NewCalls(r.done)
	p, err := process.Start(c.Role, nil, r.dir, func(w role.Word) {
		switch {
		case w.Call != nil:
			calls.Hear(w.Call)
		case w.Died != "":
			r.broken(check.Clean, "%s %s", c.Name, w.Died)
		}
	})
	if err != nil {
		return err
	}
	c.process, c.calls = p, calls
	if err := r.awaitServing(ctx, p); err != nil {
		return err
	}
	yes := true
	_, err = p.Order(ctx, role.Order{Submit: &yes})
	return err
}

// ask has the client make a request, and returns when it has.
func (c *client) ask(ctx context.Context, r traffic.Request) error {
	_, err := c.process.Order(ctx, role.Order{Ask: &r})
	return err
}

// stop ends the client in order.
func (c *client) stop() error {
	if c.process == nil {
		return nil
	}
	err := c.process.Stop(stopWithin)
	c.calls.End()
	return err
}
