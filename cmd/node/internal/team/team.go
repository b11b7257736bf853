// Package team runs several nodes of a cluster in this process, for commands that bring their own behavior along.
package team

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"taskledger/cmd/node/internal/connect"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/task"
)

// TTL bounds the time until the other nodes notice a death.
const TTL = 3 * time.Second

// grace is the time of attempts that are under way when a node ends: that is an interrupt, since the commands end their
// nodes when nothing runs any more.
const grace = time.Second

const readyLimit = time.Minute // for the nodes to share the shards

// Member is a node of a team. It owns its link.
type Member struct {
	*engine.Node
	Name    string
	Session string // id, known when it is ready
	link    *connect.Link
	ended   chan error
	stop    context.CancelFunc
}

// Config says what a member runs.
type Config struct {
	Name     string
	Behavior task.Behavior
	Also     []task.Behavior // others
	Log      *slog.Logger
}

// Join starts a node on a link, which Close closes, too, and returns when it is ready. ctx bounds the start only.
func Join(ctx context.Context, link *connect.Link, c Config) (*Member, error) {
	m, err := start(ctx, link, c)
	if err != nil {
		return nil, err
	}
	if err := m.await(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func start(ctx context.Context, link *connect.Link, c Config) (*Member, error) {
	node, err := engine.NewNode(engine.NodeConfig{
		Store:     link.Store,
		Bus:       link.Bus,
		Behaviors: append([]task.Behavior{c.Behavior}, c.Also...),
		Archive:   link.Archive,
		Name:      c.Name,
		TTL:       TTL,
		Grace:     grace,
		Log:       c.Log,
	})
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	m := &Member{
		Node:  node,
		Name:  c.Name,
		link:  link,
		ended: make(chan error, 1),
		stop:  stop,
	}
	go func() { m.ended <- node.Run(run) }()
	return m, nil
}

// await waits until the node is ready.
func (m *Member) await(ctx context.Context) error {
	select {
	case <-m.Ready():
		m.Session = m.SessionID()
		return nil
	case err := <-m.ended:
		m.ended <- err
		return errors.Join(fmt.Errorf("node %s ended", m.Name), err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close drains the node and ends it.
func (m *Member) Close() error {
	m.stop()
	return errors.Join(<-m.ended, m.link.Close())
}

// Crash ends a node as a crash does, and waits until nothing of it runs. What its Run returns does not matter: it is
// dead.
func (m *Member) Crash() {
	m.Kill()
	<-m.ended
	m.ended <- nil
}

// Team is the nodes a, b and c.
type Team struct{ Members []*Member }

// Start starts the nodes on servers of this process, and returns when they share all shards evenly. behavior is asked
// for what the node of a name runs, and each runs also others. ctx bounds the start only.
func Start(
	ctx context.Context, servers *embedded.Servers, log *slog.Logger, behavior func(name string) task.Behavior,
	also ...task.Behavior,
) (*Team, error) {
	t := &Team{}
	for _, name := range []string{"a", "b", "c"} {
		link, err := connect.On(ctx, servers, "", 0, log)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connect node %s: %w", name, err), t.Close())
		}
		m, err := start(ctx, link, Config{
			Name:     name,
			Behavior: behavior(name),
			Also:     also,
			Log:      log,
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start node %s: %w", name, err), t.Close())
		}
		t.Members = append(t.Members, m)
	}
	if err := t.settle(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// settle waits until the nodes share all shards evenly.
func (t *Team) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, errors.New("the nodes did not share the shards in time"))
	defer cancel()
	for _, m := range t.Members {
		if err := m.await(ctx); err != nil {
			return err
		}
	}
	return t.Members[0].link.AwaitEven(ctx, len(t.Members))
}

// Await returns when a number of nodes, those of the team and of other processes, is as it should be, or when ctx ends,
// with its cause.
func (t *Team) Await(ctx context.Context, nodes func(alive int) bool) error {
	for now, err := range t.Members[0].link.Store.WatchMembers(ctx) {
		if err == nil && nodes(len(now.Nodes)) {
			return nil
		}
	}
	return context.Cause(ctx)
}

// Close drains the nodes that live, and ends everything. The last one has nobody to hand its shards to.
func (t *Team) Close() error {
	for _, m := range t.Members {
		m.stop()
	}
	var errs []error
	for _, m := range t.Members {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
