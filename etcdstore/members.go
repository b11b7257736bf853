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

// ReadMembers is described in store.Members. A node key that this release cannot read counts as present, with
// nothing but its id. A node key without a lease is no session's, and nothing would ever remove it: it is left out.
// An owner key that it cannot read names no node, and the shard can be taken by the key's revision. A key under
// owner/ of no shard of the cluster is left out, too. Each of these is logged once.
func (s *Store) ReadMembers(ctx context.Context) (store.Membership, error) {
	resp, err := s.get(ctx, s.keys.nodes(), clientv3.WithRange(end(s.keys.owners())))
	if err != nil {
		return store.Membership{}, fmt.Errorf("read members: %w", err)
	}
	m := store.Membership{
		Revision: resp.Header.Revision,
		Nodes:    make(map[string]store.NodeInfo),
		Owners:   make(map[int]store.Owner),
	}
	for _, kv := range resp.Kvs {
		if err := s.addMember(&m, kv); err != nil {
			s.complain(ctx, kv, err)
		}
	}
	return m, nil
}

func (s *Store) addMember(m *store.Membership, kv *mvccpb.KeyValue) error {
	key := string(kv.Key)
	if id, ok := strings.CutPrefix(key, s.keys.nodes()); ok {
		if id == "" {
			return errors.New("it names no node")
		}
		if kv.Lease == 0 {
			return errors.New("it has no lease, so it is no session's")
		}
		n, err := decodeNode(kv.Value)
		if err != nil {
			n = store.NodeInfo{}
		}
		n.ID, n.Revision, n.Modified = id, kv.CreateRevision, kv.ModRevision
		m.Nodes[id] = n
		return err
	}
	if key == s.keys.written() {
		written, err := decodeWritten(kv.Value)
		m.Written = written
		return err
	}
	shard, ok := s.shardOf(strings.TrimPrefix(key, s.keys.owners()))
	if !ok {
		return s.noShard()
	}
	session, err := decodeOwner(kv.Value)
	if err != nil {
		session = ""
	}
	m.Owners[shard] = store.Owner{Node: session, Revision: kv.ModRevision}
	return err
}

// complain logs what is wrong with a value, once for as long as the process looks at it.
func (s *Store) complain(ctx context.Context, kv *mvccpb.KeyValue, err error) {
	if last, known := s.told.Swap(string(kv.Key), kv.ModRevision); !known || last != kv.ModRevision {
		s.log.ErrorContext(ctx, "key is ignored as far as it cannot be read", "key", string(kv.Key), "err", err)
	}
}

var errChanged = errors.New("members changed")

// WatchMembers is described in store.Members. Every membership it yields was read linearizably; the watch only tells
// when to read. It reads and yields at least every two request time-outs: a watch does not tell that etcd is away.
func (s *Store) WatchMembers(ctx context.Context) iter.Seq2[store.Membership, error] {
	return func(yield func(store.Membership, error) bool) {
		err := s.insist(ctx, "watch members", func() error {
			m, err := s.ReadMembers(ctx)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if !yield(m, err) {
				return errStopped
			}
			if err == nil {
				err = s.awaitChange(ctx, m.Revision)
			}
			return err
		})
		if err != nil {
			yield(store.Membership{}, err)
		}
	}
}

// awaitChange returns when the membership has changed after revision rev, or may have.
func (s *Store) awaitChange(ctx context.Context, rev int64) error {
	ctx, cancel := context.WithTimeout(ctx, 2*s.timeout)
	defer cancel()
	err := s.watch(ctx, s.keys.nodes(), end(s.keys.owners()), rev+1, func(*clientv3.Event) error { return errChanged })
	if errors.Is(err, errChanged) || ctx.Err() != nil {
		return nil
	}
	return err
}
