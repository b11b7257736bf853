package etcdstore

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

// Take is described in store.Owners.
func (s *Store) Take(ctx context.Context, session store.Session, shard int, seen store.Owner) (store.Ownership, error) {
	rev, err := s.take(ctx, session, shard, seen)
	if err != nil {
		return store.Ownership{}, fmt.Errorf("take shard %d: %w", shard, err)
	}
	return store.Ownership{Shard: shard, Revision: rev, Session: session}, nil
}

func (s *Store) take(ctx context.Context, session store.Session, shard int, seen store.Owner) (int64, error) {
	if err := s.checkShard(shard); err != nil {
		return 0, err
	}
	if session.Lease == 0 {
		return 0, fmt.Errorf("%w: not a session", store.ErrFenced) // lease 0 would compare equal to absence
	}
	if seen.Node != "" && seen.Revision == 0 {
		return 0, fmt.Errorf("%w: owner %q cannot have revision 0", store.ErrRefused, seen.Node)
	}
	owner, me := s.keys.owner(shard), s.keys.node(session.ID)
	compare := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(owner), "=", seen.Revision),
		clientv3.Compare(clientv3.LeaseValue(me), "=", session.Lease),
	}
	if seen.Node != "" { // a key that names nobody has fenced whoever it named before
		compare = append(compare,
			clientv3.Compare(clientv3.LeaseValue(s.keys.node(seen.Node)), "=", 0), // an absent key has lease 0, too
		)
	}
	resp, err := s.transact(ctx, compare,
		[]clientv3.Op{put(owner, encodeOwner(session.ID))},
		[]clientv3.Op{
			clientv3.OpGet(owner),
			clientv3.OpGet(me),
		})
	if err != nil {
		return 0, err
	}
	if resp.Succeeded {
		return resp.Header.Revision, nil
	}
	now, alive := found(resp, 0), found(resp, 1)
	switch {
	case alive == nil || alive.Lease != session.Lease:
		return 0, fmt.Errorf("%w: session %s is gone", store.ErrFenced, session.ID)
	case names(now, session.ID, seen.Revision):
		return now.ModRevision, nil // an earlier copy was applied
	case now == nil || now.ModRevision != seen.Revision:
		return 0, fmt.Errorf("%w: the owner key has changed", store.ErrFenced)
	}
	return 0, fmt.Errorf("%w: owner %q is alive", store.ErrFenced, seen.Node)
}

// HandOver is described in store.Owners. That the owner key names the target after o's revision is as good as the
// call's own success: session ids are never used again.
func (s *Store) HandOver(ctx context.Context, o store.Ownership, target string) error {
	if err := s.handOver(ctx, o, target); err != nil {
		return fmt.Errorf("hand shard %d over to %s: %w", o.Shard, target, err)
	}
	return nil
}

func (s *Store) handOver(ctx context.Context, o store.Ownership, target string) error {
	if o.Revision <= 0 {
		return fmt.Errorf("%w: not an ownership", store.ErrFenced) // revision 0 would compare equal to absence
	}
	owner := s.keys.owner(o.Shard)
	resp, err := s.transact(ctx,
		[]clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(owner), "=", o.Revision),
			clientv3.Compare(clientv3.LeaseValue(s.keys.node(target)), "!=", 0), // that of an absent key is 0
		},
		[]clientv3.Op{put(owner, encodeOwner(target))},
		[]clientv3.Op{clientv3.OpGet(owner)})
	if err != nil || resp.Succeeded {
		return err
	}
	switch now := found(resp, 0); {
	case names(now, target, o.Revision):
		return nil // an earlier copy was applied
	case now == nil || now.ModRevision != o.Revision:
		return fmt.Errorf("%w: the owner key has changed", store.ErrFenced)
	}
	return fmt.Errorf("%w: the target has left", store.ErrFenced)
}

// names reports whether the owner key names the session since after revision rev.
func names(owner *mvccpb.KeyValue, session string, rev int64) bool {
	if owner == nil || owner.ModRevision <= rev {
		return false
	}
	id, err := decodeOwner(owner.Value)
	return err == nil && id == session
}
