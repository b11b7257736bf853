// Package embedded runs etcd, NATS and a node in one process: for tests, for trying things, for a service of one
// node. Begin with Start, or with StartServers for the servers alone. It is the only library package that imports
// server code.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/internal/connection"
	"taskledger/natsbus"
	"taskledger/task"
)

// Config configures the process. The zero value works.
type Config struct {
	Dir     string       // data; default: a temporary directory that Close removes
	NoNATS  bool         // etcd only
	Cluster string       // name of the cluster, 1 to 64 of [a-z0-9-]; default "taskledger"
	Shards  int          // shards of a cluster that is created; 0 = 16
	Log     *slog.Logger // of the servers, and of the node unless Node.Log is set; default: slog.Default()

	GaveUp func(problem string) // as that of ServersConfig

	// StartWith sets Store, Bus and SessionFile of Node, Archive unless that is set or Trimming is TrimAll, and Logs
	// unless they are set.
	Node engine.NodeConfig
}

// Node is an engine.Node whose servers live in this process.
type Node struct {
	*engine.Node
	*Servers
	cluster *cluster.Cluster
	stop    context.CancelFunc
	ended   chan error // what Run returned
	close   func() error
}

// Start runs a node with every default on data in dir; "" = a temporary directory that Close removes. It returns when
// the node is ready, and wraps ErrDirInUse, ErrStoreInFiles, or a *store.InvalidError for a wrong behavior. The
// caller closes the node. Until Close, other processes of this user find the servers by dir: see Servers.Advertise.
func Start(ctx context.Context, dir string, behaviors ...task.Behavior) (*Node, error) {
	return StartWith(ctx, Config{Dir: dir, Node: engine.NodeConfig{Behaviors: behaviors}})
}

// StartWith is Start with a configuration. ctx bounds the start only; the caller ends the node with Close.
func StartWith(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Node.Log == nil {
		cfg.Node.Log = cfg.Log
	}
	if err := cfg.Node.Validate(); err != nil { // before the cluster is created
		return nil, fmt.Errorf("start node: %w", err)
	}
	servers, err := StartServers(ctx, ServersConfig{
		Dir:    cfg.Dir,
		NoNATS: cfg.NoNATS,
		Log:    cfg.Log,
		GaveUp: cfg.GaveUp,
	})
	if err != nil {
		return nil, err
	}
	n := &Node{Servers: servers}
	n.close = sync.OnceValue(n.shutDown)
	if err := n.start(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("start node: %w", err), n.Close())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, cfg Config) (err error) {
	if n.cluster, err = n.Connect(ctx, cfg.Cluster, cfg.Shards, cfg.Log); err != nil {
		return err
	}
	if cfg.Dir != "" {
		cfg.Node.SessionFile = filepath.Join(cfg.Dir, "session.json")
	}
	if n.Node, err = n.cluster.NewNode(cfg.Node); err != nil {
		return err
	}
	// The servers are advertised before the node serves, which may take longer than the sessions of those who joined
	// last.
	if err := n.Advertise(nil); err != nil {
		return err
	}
	run, stop := context.WithCancel(context.Background())
	n.stop, n.ended = stop, make(chan error, 1)
	go func() { n.ended <- n.Run(run) }()
	select {
	case <-n.Ready():
		return nil
	case err := <-n.ended:
		n.ended <- err
		return errors.Join(errors.New("the node ended"), err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Connect opens the named cluster ("" = "taskledger") on the servers, for one more node or client in this process.
// shards counts only when that creates the cluster; 0 = 16. The caller closes it before the servers.
func (s *Servers) Connect(ctx context.Context, name string, shards int, log *slog.Logger) (*cluster.Cluster, error) {
	to := connection.Config{
		Etcd: etcdstore.Config{
			Cluster:    name,
			ID:         s.expected,
			Client:     s.EtcdClient(),
			Shards:     shards,
			Defragment: s.defragment,
			Log:        log,
		},
		Archive: ArchiveConfig(),
		New:     s.fresh,
	}
	if s.nats != nil {
		to.NATS = natsbus.Config{
			Cluster:   name,
			URLs:      []string{s.NATSURL()},
			InProcess: s.NATSInProcess(),
			NKey:      s.NATSNKey(),
			Log:       log,
		}
	}
	is, err := connection.Open(ctx, to)
	if err != nil {
		return nil, err
	}
	return &cluster.Cluster{
		Store:   is.Store,
		Bus:     is.Bus,
		Archive: is.Archive,
		Logs:    is.Logs,
	}, nil
}

// ArchiveConfig returns the configuration for the archive on Servers, for every process that reaches them. Its
// segments are durable at once, since these servers sync before they acknowledge.
func ArchiveConfig() natsbus.ArchiveConfig { return natsbus.ArchiveConfig{DurableAfter: -1} }

// Close drains the node and stops the servers. Calls after the first return what it returned.
func (n *Node) Close() error { return n.close() }

func (n *Node) shutDown() error {
	var errs []error
	if n.ended != nil {
		n.stop()
		errs = append(errs, <-n.ended)
	}
	if n.cluster != nil {
		errs = append(errs, n.cluster.Close())
	}
	return errors.Join(append(errs, n.Servers.Close())...)
}
