package etcdstore

import (
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

func checkOwnership(o store.Ownership) error {
	if o.Revision <= 0 || o.Session.Lease == 0 {
		return fmt.Errorf("%w: not an ownership", store.ErrFenced) // 0 would compare equal to absence
	}
	return nil
}

// fences returns the compares that hold as long as the ownership does.
func (s *Store) fences(o store.Ownership) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(s.keys.owner(o.Shard)), "=", o.Revision),
		clientv3.Compare(clientv3.LeaseValue(s.keys.node(o.Session.ID)), "=", o.Session.Lease),
	}
}

// readFences reads, as operations 0 and 1, what fenced looks at. The node key is read whole: with the keys alone
// etcd tells no leases.
func (s *Store) readFences(o store.Ownership) []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(s.keys.owner(o.Shard), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.keys.node(o.Session.ID)),
	}
}

// fenced returns an error that wraps store.ErrFenced when the owner key or the node key is not the ownership's.
func fenced(o store.Ownership, owner, node *mvccpb.KeyValue) error {
	switch {
	case owner == nil || owner.ModRevision != o.Revision:
		return fmt.Errorf("%w: the owner key has changed", store.ErrFenced)
	case node == nil || node.Lease != o.Session.Lease:
		return fmt.Errorf("%w: session %s is gone", store.ErrFenced, o.Session.ID)
	}
	return nil
}
