// Package measure runs nodes on temporary data, keeps them busy with closed loops, and takes the time of what they do.
// The command bench and the benchmarks of integration/bench share it.
package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/cluster"
	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/internal/connection"
	"taskledger/natsbus"
)

// Discard drops what servers, nodes and clients log.
var Discard = slog.New(slog.DiscardHandler)

// Config says which servers to start. The zero value has etcd in this process.
type Config struct {
	Shards int    // counts when the cluster is created; 0 = the default
	Etcd   string // endpoint of an etcd in another process; "" = this process runs it
	// EtcdCPU returns the processor time that the process of Etcd has used.
	EtcdCPU func() (time.Duration, error)
}

// Servers holds the etcd and NATS under measurement, on temporary data as a node has them that runs its own.
type Servers struct {
	*embedded.Servers // its etcd is idle beside one in another process
	cfg               Config
	raw               *clientv3.Client // asks etcd in the same way as the engine does
}

// StartServers starts servers. The caller closes them after the nodes.
func StartServers(ctx context.Context, cfg Config) (*Servers, error) {
	inside, err := embedded.StartServers(ctx, embedded.ServersConfig{Log: Discard})
	if err != nil {
		return nil, err
	}
	s := &Servers{Servers: inside, cfg: cfg, raw: inside.EtcdClient()}
	if cfg.Etcd == "" {
		return s, nil
	}
	if s.raw, err = etcdstore.NewClient(ctx, etcdstore.Config{Endpoints: []string{cfg.Etcd}}); err != nil {
		return nil, errors.Join(err, inside.Close())
	}
	return s, nil
}

// Close stops the servers.
func (s *Servers) Close() error {
	var err error
	if s.cfg.Etcd != "" {
		err = s.raw.Close()
	}
	return errors.Join(err, s.Servers.Close())
}

// Open opens the cluster of a name, "" = the default, for one more node or client.
func (s *Servers) Open(ctx context.Context, name string) (*cluster.Cluster, error) {
	if s.cfg.Etcd == "" {
		return s.Connect(ctx, name, s.cfg.Shards, Discard)
	}
	is, err := connection.Open(ctx, connection.Config{
		Etcd: etcdstore.Config{
			Cluster:   name,
			Endpoints: []string{s.cfg.Etcd},
			Shards:    s.cfg.Shards,
			Log:       Discard,
		},
		NATS: natsbus.Config{
			Cluster:   name,
			URLs:      []string{s.NATSURL()},
			InProcess: s.NATSInProcess(),
			NKey:      s.NATSNKey(),
			Log:       Discard,
		},
		Archive: embedded.ArchiveConfig(),
		New:     true,
	})
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

// applied returns the number of requests that write which etcd has applied so far.
func (s *Servers) applied(ctx context.Context) (uint64, error) {
	endpoint := "" // a client in the process has none
	if s.cfg.Etcd != "" {
		endpoint = s.raw.Endpoints()[0]
	}
	status, err := s.raw.Status(ctx, endpoint)
	if err != nil {
		return 0, fmt.Errorf("ask etcd for its status: %w", err)
	}
	return status.RaftAppliedIndex, nil
}

// etcdCPU returns the processor time that etcd has used in a process of its own.
func (s *Servers) etcdCPU() (time.Duration, error) {
	if s.cfg.EtcdCPU == nil {
		return 0, nil
	}
	return s.cfg.EtcdCPU()
}

// CPU returns the processor time that this process has used.
func CPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
