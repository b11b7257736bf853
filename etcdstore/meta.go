package etcdstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const keyBytes = 32

// loadMeta reads the meta record, and creates it when the cluster is new. Of several nodes that do so at once one
// wins, and the others take over what it wrote.
func (s *Store) loadMeta(ctx context.Context, shards int, existing bool) error {
	resp, err := s.get(ctx, s.keys.meta())
	if err != nil {
		return fmt.Errorf("read meta: %w", err)
	}
	kvs := resp.Kvs
	if len(kvs) == 0 && existing {
		return ErrNoCluster
	}
	if len(kvs) == 0 {
		fresh := newMeta(shards)
		resp, err := s.transact(ctx,
			[]clientv3.Cmp{
				clientv3.Compare(clientv3.CreateRevision(s.keys.meta()), "=", 0),
			},
			[]clientv3.Op{put(s.keys.meta(), encodeMeta(fresh))},
			[]clientv3.Op{clientv3.OpGet(s.keys.meta())})
		if err != nil {
			return fmt.Errorf("create meta: %w", err)
		}
		if resp.Succeeded {
			s.meta = fresh
			return nil
		}
		kvs = resp.Responses[0].GetResponseRange().Kvs
	}
	if s.meta, err = decodeMeta(kvs[0].Value); err != nil {
		return fmt.Errorf("read meta: %w", err)
	}
	if shards != 0 && shards != s.meta.shards {
		return fmt.Errorf("%d shards asked for, but the cluster was created with %d: %w", shards, s.meta.shards, ErrShards)
	}
	return nil
}

func newMeta(shards int) meta {
	if shards == 0 {
		shards = defaultShards
	}
	m := meta{shards: shards, id: newID(), key: make([]byte, keyBytes)}
	rand.Read(m.key) // never fails
	return m
}

// newID draws 80 random bits: 16 characters of [a-z2-7].
func newID() string { return strings.ToLower(rand.Text()[:16]) }
