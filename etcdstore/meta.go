package etcdstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

// loadMeta reads the meta record, and creates it when the cluster is new: no key with its prefix is there. Of
// several nodes that do so at once one wins, and the others take over what it wrote.
func (s *Store) loadMeta(ctx context.Context, cfg *Config) error {
	if err := s.findMeta(ctx, cfg); err != nil {
		return err
	}
	if cfg.ID != "" && cfg.ID != s.meta.id {
		return fmt.Errorf("%w: its id is %s, that of cluster %s was expected", ErrOtherCluster, s.meta.id, cfg.ID)
	}
	return nil
}

func (s *Store) findMeta(ctx context.Context, cfg *Config) error {
	resp, err := s.get(ctx, s.keys.meta())
	if err != nil {
		return fmt.Errorf("read meta: %w", err)
	}
	kvs := resp.Kvs
	if len(kvs) == 0 && (cfg.Existing || cfg.ID != "") {
		resp, err := s.get(ctx,
			string(s.keys), clientv3.WithRange(end(string(s.keys))), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return fmt.Errorf("read meta: %w", err)
		}
		if len(resp.Kvs) > 0 {
			if err := s.checkFinished(ctx); err != nil {
				return err
			}
			return fmt.Errorf("%w: %w", store.ErrUnavailable, s.metaIsLost(resp.Kvs[0].Key))
		}
		if cfg.ID != "" {
			return fmt.Errorf("%w: that of id %s was expected", ErrNoCluster, cfg.ID)
		}
		return ErrNoCluster
	}
	if len(kvs) == 0 && cfg.MayCreate != nil {
		if err := s.checkFinished(ctx); err != nil {
			return err
		}
		if err := cfg.MayCreate(ctx); err != nil {
			return fmt.Errorf("it is not there, and not created: %w", err)
		}
	}
	if len(kvs) == 0 {
		fresh := newMeta(cfg.Shards)
		prefix := string(s.keys)
		all := clientv3.WithRange(end(prefix))
		resp, err := s.transact(ctx,
			[]clientv3.Cmp{
				clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithRange(end(prefix)), // no key is there
			},
			[]clientv3.Op{put(s.keys.meta(), encodeMeta(fresh))},
			[]clientv3.Op{
				clientv3.OpGet(s.keys.meta()),
				clientv3.OpGet(prefix, all, clientv3.WithLimit(1), clientv3.WithKeysOnly()),
			})
		if err != nil {
			return fmt.Errorf("create meta: %w", err)
		}
		if resp.Succeeded {
			s.meta, s.meta.created = fresh, resp.Header.Revision
			return nil
		}
		kvs = resp.Responses[0].GetResponseRange().Kvs
		if other := found(resp, 1); len(kvs) == 0 && other != nil {
			return cmp.Or(s.checkFinished(ctx), s.metaIsLost(other.Key))
		}
	}
	if s.meta, err = decodeMeta(kvs[0].Value); err != nil {
		return fmt.Errorf("read meta: %w", err)
	}
	s.meta.created = kvs[0].CreateRevision
	if cfg.Shards != 0 && cfg.Shards != s.meta.shards {
		return fmt.Errorf("%d shards asked for, but the cluster was created with %d: %w",
			cfg.Shards, s.meta.shards, ErrShards)
	}
	return nil
}

func (s *Store) metaIsLost(other []byte) error {
	return fmt.Errorf("there is no key %s, but there are others under %s, %s for one: restore it from a backup, since another one would begin "+
		"another cluster over them; or remove them all, or choose another name", s.keys.meta(), string(s.keys), other)
}

func newMeta(shards int) meta {
	if shards == 0 {
		shards = defaultShards
	}
	m := meta{shards: shards, id: draw(16), key: make([]byte, keyBytes)}
	rand.Read(m.key) // never fails
	return m
}

// draw returns up to 26 random characters of [a-z2-7], 5 bits each.
func draw(characters int) string { return strings.ToLower(rand.Text()[:characters]) }
