package etcdstore

import (
	"context"
	"fmt"
)

// Open connects, refuses servers that are too old, and creates or reads the cluster's meta record. ctx bounds the
// opening only. It starts no goroutine of its own. The error wraps ErrDenied when etcd refuses the user, and
// store.ErrUnavailable when no member answers or TLS fails; it says why. It wraps store.ErrUnfinished where a cluster
// was being copied there.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	return openWith(ctx, cfg, (*Store).loadMeta)
}

// openWith opens a store of a cluster whose meta record load finds.
func openWith(
	ctx context.Context, cfg Config, load func(s *Store, ctx context.Context, cfg *Config) error,
) (*Store, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := &Store{
		client:     cfg.Client,
		dialled:    dialName(cfg),
		keys:       keys(cfg.Cluster + "/"),
		timeout:    cfg.RequestTimeout,
		quota:      cfg.Quota,
		log:        cfg.Log,
		defragment: cfg.Defragment,
	}
	opening := &s.tries
	if s.client == nil {
		if s.client, err = connect(ctx, cfg, opening); err != nil {
			return nil, fmt.Errorf("connect to etcd: %w", opening.explain(err, cfg))
		}
		s.owned = true
	}
	if err = s.open(ctx, cfg); err == nil {
		err = load(s, ctx, &cfg)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("open cluster %q: %w", cfg.Cluster, opening.explain(err, cfg))
	}
	opening.end()
	return s, nil
}

func (s *Store) open(ctx context.Context, cfg Config) error {
	if err := s.checkServers(ctx); err != nil {
		return err
	}
	if cfg.Authenticated && s.owned {
		if err := s.checkAuth(ctx); err != nil {
			return err
		}
	}
	return nil
}
