package etcdstore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

// Store is a cluster in etcd. Its methods may be called concurrently.
type Store struct {
	client  *clientv3.Client
	owned   bool   // by the Store, which closes it
	dialled string // what errors call the server that is dialled; "" where the client dials
	keys    keys
	meta    meta
	timeout time.Duration
	quota   int64 // where etcd does not tell its own
	log     *slog.Logger

	defragment func(context.Context) error // nil = refused

	streams atomic.Uint64 // counts the streams that were opened for watches
	tries   tries         // of requests, of a client of its own
	told    sync.Map      // key -> mod revision of the value that was complained of
}

var _ store.Store = (*Store)(nil)

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

// Name returns the name of the cluster, which is the prefix of every key.
func (s *Store) Name() string { return strings.TrimSuffix(string(s.keys), "/") }

// Cluster returns what was fixed when the cluster was created.
func (s *Store) Cluster() store.Cluster {
	return store.Cluster{ID: s.meta.id, Shards: s.meta.shards, Key: slices.Clone(s.meta.key)}
}

func (s *Store) checkShard(shard int) error {
	if shard < 0 || shard >= s.meta.shards {
		return fmt.Errorf("shard %d of %d: %w", shard, s.meta.shards, store.ErrRefused)
	}
	return nil
}

// shardOf reads the number of a shard of the cluster, in the one form that keys have.
func (s *Store) shardOf(text string) (shard int, ok bool) {
	shard, err := strconv.Atoi(text)
	return shard, err == nil && s.checkShard(shard) == nil && strconv.Itoa(shard) == text
}

func (s *Store) noShard() error {
	return fmt.Errorf("it is of no shard: the cluster has %d, from 0 on", s.meta.shards)
}
