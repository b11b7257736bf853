package etcdstore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"taskledger/engine"
)

// Store is a cluster in etcd. Its methods may be called concurrently.
type Store struct {
	client  *clientv3.Client
	owned   bool // by the Store, which closes it
	keys    keys
	meta    meta
	timeout time.Duration
	log     *slog.Logger
}

var _ engine.Store = (*Store)(nil)

// Open connects, refuses servers that are too old, and creates or reads the cluster's meta record. ctx bounds the
// opening only. It starts no goroutine of its own.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := &Store{client: cfg.Client, keys: keys(cfg.Cluster + "/"), timeout: cfg.RequestTimeout, log: cfg.Log}
	if s.client == nil {
		if s.client, err = connect(cfg); err != nil {
			return nil, fmt.Errorf("connect to etcd: %w", err)
		}
		s.owned = true
	}
	if err := s.open(ctx, cfg); err != nil {
		s.Close()
		return nil, fmt.Errorf("open cluster %q: %w", cfg.Cluster, err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, cfg Config) error {
	if err := s.checkServers(ctx); err != nil {
		return err
	}
	return s.loadMeta(ctx, cfg.Shards, cfg.Existing)
}

// connect makes a client that finds a dead member within 13 s at worst; requests move on after their own time-out.
func connect(cfg Config) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:            cfg.Endpoints,
		TLS:                  cfg.TLS,
		Username:             cfg.Username,
		Password:             cfg.Password,
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		// gRPC's own schedule waits up to 2 minutes before it tries a member that was away.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		})},
		Logger: zap.NewNop(),
	})
}

// Close closes the connection unless it came with the Config. Calls under way then fail.
func (s *Store) Close() error {
	if !s.owned {
		return nil
	}
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close etcd client: %w", err)
	}
	return nil
}

// Cluster returns what was fixed when the cluster was created.
func (s *Store) Cluster() engine.Cluster {
	return engine.Cluster{ID: s.meta.id, Shards: s.meta.shards, Key: slices.Clone(s.meta.key)}
}

func (s *Store) checkShard(shard int) error {
	if shard < 0 || shard >= s.meta.shards {
		return fmt.Errorf("shard %d of %d: %w", shard, s.meta.shards, engine.ErrRefused)
	}
	return nil
}
