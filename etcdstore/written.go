package etcdstore

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

// readWritten reads what a node must read to join, and the mod revision of the key that says so; 0 = there is none.
func (s *Store) readWritten(ctx context.Context) (written store.Reads, revision int64, err error) {
	resp, err := s.get(ctx, s.keys.written())
	if err == nil && len(resp.Kvs) > 0 {
		revision = resp.Kvs[0].ModRevision
		written, err = decodeWritten(resp.Kvs[0].Value)
	}
	if err != nil {
		return store.Reads{}, 0, fmt.Errorf("read %s: %w", s.keys.written(), err)
	}
	return written, revision, nil
}

// Raise is described in store.Sessions. It holds the revision that was read, so that no number ever falls.
func (s *Store) Raise(ctx context.Context, need store.Reads) error {
	for {
		written, revision, err := s.readWritten(ctx)
		if err != nil || written.Lacks(need) == "" {
			return err
		}
		resp, err := s.transact(ctx,
			[]clientv3.Cmp{
				clientv3.Compare(clientv3.ModRevision(s.keys.written()), "=", revision),
			},
			[]clientv3.Op{put(s.keys.written(), encodeWritten(written.With(need)))},
			nil)
		if err != nil || resp.Succeeded {
			return err
		}
	}
}
