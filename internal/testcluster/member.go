package testcluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine"
	"taskledger/task"
)

// Node is a running member of a cluster.
type Node struct {
	*engine.Node
	Name string

	cluster *Cluster
	owner   bool
	process *process
}

// Client is a running client of a cluster.
type Client struct {
	*engine.Client
	process *process
}

// process stands for a process: a Run and the connections it uses.
type process struct {
	stop  context.CancelFunc
	ended chan struct{}
	err   error // of Run, once ended is closed
	close func()
	once  sync.Once
}

func launch(run func(context.Context) error, disconnect func()) *process {
	ctx, stop := context.WithCancel(context.Background())
	p := &process{stop: stop, ended: make(chan struct{}), close: disconnect}
	go func() {
		defer close(p.ended)
		p.err = run(ctx)
	}()
	return p
}

// end waits for Run and closes the connections.
func (p *process) end() (err error) {
	p.once.Do(func() {
		<-p.ended
		err = p.err
		p.close()
		p.stop()
	})
	return err
}

// StartNode starts a node that runs the behaviors and waits until it is ready. configure, unless nil, changes the
// configuration before it is used.
func (c *Cluster) StartNode(name string, configure func(*engine.NodeConfig), behaviors ...task.Behavior) *Node {
	c.t.Helper()
	n := c.startNode(name, configure, behaviors)
	n.AwaitReady()
	return n
}

// StartNodes starts several nodes of one configuration at the same time and waits until all are ready. behaviors is
// asked for what each of them runs.
func (c *Cluster) StartNodes(configure func(*engine.NodeConfig), behaviors func(node string) []task.Behavior, names ...string) []*Node {
	c.t.Helper()
	var nodes []*Node
	for _, name := range names {
		nodes = append(nodes, c.startNode(name, configure, behaviors(name)))
	}
	for _, n := range nodes {
		n.AwaitReady()
	}
	return nodes
}

func (c *Cluster) startNode(name string, configure func(*engine.NodeConfig), behaviors []task.Behavior) *Node {
	c.t.Helper()
	to, bus, disconnect, log := c.connect(name)
	cfg := engine.NodeConfig{
		Store:     to,
		Bus:       bus,
		Behaviors: behaviors,
		Name:      name,
		TTL:       c.options.TTL,
		Grace:     5 * time.Second,
		Log:       log,
	}
	if configure != nil {
		configure(&cfg)
	}
	node, err := engine.NewNode(cfg)
	if err != nil {
		c.t.Fatalf("make node %s: %v", name, err)
	}
	n := &Node{Node: node, Name: name, cluster: c, owner: cfg.Owner == nil || *cfg.Owner, process: launch(node.Run, disconnect)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = append(c.nodes, n)
	return n
}

// AwaitReady waits until the node first serves what falls to it.
func (n *Node) AwaitReady() {
	n.cluster.t.Helper()
	select {
	case <-n.Ready():
	case <-n.process.ended:
		n.cluster.t.Fatalf("node %s ended while it started: %v", n.Name, n.process.err)
	case <-time.After(timeout):
		n.cluster.t.Fatalf("node %s is not ready after %s", n.Name, timeout)
	}
}

// Stop drains the node and waits until it is gone. It may be called more than once, and from any goroutine.
func (n *Node) Stop() {
	n.process.stop()
	if err := n.process.end(); err != nil {
		n.cluster.t.Errorf("node %s: %v", n.Name, err)
	}
}

// Kill ends the node as a crash would: nothing is handed over. Its session ends with it, as it would after its TTL.
func (n *Node) Kill() {
	session := n.SessionID()
	n.Crash()
	n.cluster.endSession(session)
}

// Crash is Kill, but the session of the node lives on until its TTL.
func (n *Node) Crash() {
	n.cluster.mu.Lock()
	n.cluster.killed = true
	n.cluster.mu.Unlock()
	n.Node.Kill()
	_ = n.process.end()
}

// endSession revokes the lease of a session.
func (c *Cluster) endSession(id string) {
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if c.files != nil {
		if err := c.files.endSession(ctx, id); err != nil {
			c.t.Errorf("end session %s: %v", id, err)
		}
		return
	}
	key, err := c.Etcd.Get(ctx, prefix+"node/"+id)
	if err == nil && len(key.Kvs) > 0 {
		_, err = c.Etcd.Revoke(ctx, clientv3.LeaseID(key.Kvs[0].Lease))
	}
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		c.t.Errorf("end session %s: %v", id, err)
	}
}

func (n *Node) stopped() bool {
	select {
	case <-n.process.ended:
		return true
	default:
		return false
	}
}

// StartClient starts a client with store and bus; configure, unless nil, changes its configuration.
func (c *Cluster) StartClient(name string, configure func(*engine.ClientConfig)) *Client {
	c.t.Helper()
	to, bus, disconnect, log := c.connect(name)
	cfg := engine.ClientConfig{
		Store: to,
		Bus:   bus,
		Name:  name,
		Log:   log,
	}
	if configure != nil {
		configure(&cfg)
	}
	client, err := engine.NewClient(cfg)
	if err != nil {
		c.t.Fatalf("make client %s: %v", name, err)
	}
	started := &Client{client, launch(client.Run, disconnect)}
	c.clients = append(c.clients, started)
	return started
}

// Stop ends the client and waits until it is gone. It may be called more than once.
func (c *Client) Stop() {
	c.process.stop()
	_ = c.process.end()
}
