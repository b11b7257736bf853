package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

// Behind is described in store.Repairer.
func (s *Store) Behind(ctx context.Context, shard int, entry uint64) iter.Seq2[store.StoredKey, error] {
	return func(yield func(store.StoredKey, error) bool) {
		stop := end(s.keys.journal(shard))
		for from, more := s.keys.entry(shard, entry)+"\x00", true; more; {
			resp, err := s.get(ctx, from, clientv3.WithRange(stop), clientv3.WithLimit(pageEntries))
			if err != nil {
				yield(store.StoredKey{}, fmt.Errorf("read shard %d behind entry %d: %w", shard, entry, err))
				return
			}
			for _, kv := range resp.Kvs {
				if !yield(toStored(kv), nil) {
					return
				}
				from = string(kv.Key) + "\x00"
			}
			more = resp.More
		}
	}
}

func toStored(kv *mvccpb.KeyValue) store.StoredKey {
	n, err := number(kv.Key)
	if err != nil {
		n = 0
	}
	_, data := carried(kv.Value)
	return store.StoredKey{Key: string(kv.Key), Entry: n, Revision: kv.ModRevision, Replaced: kv.Version > 1, Data: data}
}

// Foreign is described in store.Repairer.
func (s *Store) Foreign(ctx context.Context) iter.Seq2[store.StoredKey, error] {
	return func(yield func(store.StoredKey, error) bool) {
		for _, kind := range []string{s.keys.owners(), s.keys.journals(), s.keys.snapshots(), s.keys.losses(), s.keys.mailbox()} {
			for from := kind; ; {
				resp, err := s.get(ctx, from, clientv3.WithRange(end(kind)), clientv3.WithLimit(1), clientv3.WithKeysOnly())
				if err != nil {
					yield(store.StoredKey{}, fmt.Errorf("look for foreign keys: %w", err))
					return
				}
				if len(resp.Kvs) == 0 {
					break
				}
				kv := resp.Kvs[0]
				name, _, longer := strings.Cut(strings.TrimPrefix(string(kv.Key), kind), "/")
				if from = string(kv.Key) + "\x00"; longer {
					from = end(kind + name + "/")
				}
				_, known := s.shardOf(name)
				if known || kind == s.keys.mailbox() && name == fmt.Sprint(s.meta.shards) { // the box of questions to nodes
					continue
				}
				if !yield(store.StoredKey{Key: string(kv.Key), Revision: kv.ModRevision}, nil) {
					return
				}
			}
		}
	}
}

// Leaseless is described in store.Repairer.
func (s *Store) Leaseless(ctx context.Context) iter.Seq2[store.StoredKey, error] {
	return func(yield func(store.StoredKey, error) bool) {
		resp, err := s.get(ctx, s.keys.nodes(), clientv3.WithPrefix())
		if err != nil {
			yield(store.StoredKey{}, fmt.Errorf("look for node keys without a lease: %w", err))
			return
		}
		for _, kv := range resp.Kvs {
			if kv.Lease == 0 && !yield(store.StoredKey{Key: string(kv.Key), Revision: kv.ModRevision, Data: kv.Value}, nil) {
				return
			}
		}
	}
}

var errWritten = errors.New("it was written since")

// Remove is described in store.Repairer. It holds the revision of the key, which is gone with its own success.
func (s *Store) Remove(ctx context.Context, k store.StoredKey) error {
	if !strings.HasPrefix(k.Key, string(s.keys)) || k.Revision <= 0 {
		return fmt.Errorf("remove %q: %w: no key of the cluster", k.Key, store.ErrRefused)
	}
	resp, err := s.transact(ctx,
		[]clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(k.Key), "=", k.Revision),
		},
		[]clientv3.Op{clientv3.OpDelete(k.Key)},
		[]clientv3.Op{clientv3.OpGet(k.Key, clientv3.WithKeysOnly())})
	if err == nil && !resp.Succeeded && found(resp, 0) != nil {
		err = errWritten
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", k.Key, err)
	}
	return nil
}
