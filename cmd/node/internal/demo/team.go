package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/connect"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/task"
)

const (
	ttl        = 3 * time.Second // of the sessions: how soon the death is noticed
	readyLimit = time.Minute     // for the three nodes to share the shards
)

// member is one of the three nodes.
type member struct {
	*engine.Node
	name    string
	session string // id, known when it is ready
	link    *connect.Link
	ended   chan error
	stop    context.CancelFunc
}

// team is three nodes on servers of this process, with temporary data.
type team struct {
	servers *embedded.Servers
	members []*member
	log     *slog.Logger
}

func startTeam(ctx context.Context, log *slog.Logger, behavior func(name string) task.Behavior) (*team, error) {
	servers, err := embedded.StartServers(ctx, embedded.ServersConfig{Log: log})
	if err != nil {
		return nil, err
	}
	t := &team{servers: servers, log: log}
	for _, name := range []string{"a", "b", "c"} {
		if err := t.add(ctx, name, behavior(name)); err != nil {
			return nil, errors.Join(fmt.Errorf("start node %s: %w", name, err), t.close())
		}
	}
	if err := t.settle(ctx); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *team) add(ctx context.Context, name string, b task.Behavior) error {
	link, err := connect.On(ctx, t.servers, "", 0, t.log)
	if err != nil {
		return err
	}
	node, err := engine.NewNode(engine.NodeConfig{Store: link.Store, Bus: link.Bus, Behaviors: []task.Behavior{b},
		Archive: link.Archive, Name: name, TTL: ttl, Log: t.log})
	if err != nil {
		return errors.Join(err, link.Close())
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	m := &member{Node: node, name: name, link: link, ended: make(chan error, 1), stop: stop}
	t.members = append(t.members, m)
	go func() { m.ended <- node.Run(run) }()
	return nil
}

// settle waits until the nodes share all shards evenly.
func (t *team) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, errors.New("the nodes did not share the shards in time"))
	defer cancel()
	for _, m := range t.members {
		select {
		case <-m.Ready():
			m.session = m.SessionID()
		case err := <-m.ended:
			m.ended <- err
			return errors.Join(fmt.Errorf("node %s ended", m.name), err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return t.members[0].link.AwaitEven(ctx, len(t.members))
}

// close drains the nodes that live, and ends everything. The last one has nobody to hand its shards to.
func (t *team) close() error {
	var errs []error
	for _, m := range t.members {
		m.stop()
	}
	for _, m := range t.members {
		errs = append(errs, <-m.ended, m.link.Close())
	}
	return errors.Join(append(errs, t.servers.Close())...)
}

// kill ends a node like a crash, and waits until nothing of it runs. What its Run returns does not matter: it is dead.
func (m *member) kill() {
	m.Kill()
	<-m.ended
	m.ended <- nil
}

// watched is a behavior that reports the start of each attempt.
type watched struct {
	task.Behavior
	started func(ctx context.Context, a task.Attempt)
}

// Policy gives up soon: what cannot be read now is a finding, not something to wait for.
func (w watched) Policy() task.Policy {
	p := w.Behavior.Policy()
	p.MaxAttempts, p.Backoff = 3, task.Backoff{Base: 50 * time.Millisecond, Max: time.Second}
	return p
}

// Run implements task.Behavior.
func (w watched) Run(ctx context.Context, a task.Attempt) task.Outcome {
	w.started(ctx, a)
	return w.Behavior.Run(ctx, a)
}

var _ task.Behavior = watched{}

func checksum(root string) task.Behavior {
	return builtin.Checksum(builtin.ChecksumOptions{Root: root})
}
