package etcdstore

import (
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine"
)

func checkOwnership(o engine.Ownership) error {
	if o.Revision <= 0 || o.Session.Revision <= 0 {
		return fmt.Errorf("%w: not an ownership", engine.ErrFenced) // revision 0 would compare equal to absence
	}
	return nil
}

// fences are the compares that hold as long as the ownership does.
func (s *Store) fences(o engine.Ownership) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(s.keys.owner(o.Shard)), "=", o.Revision),
		clientv3.Compare(clientv3.CreateRevision(s.keys.node(o.Session.ID)), "=", o.Session.Revision),
	}
}

// readFences reads, as operations 0 and 1, what fenced looks at.
func (s *Store) readFences(o engine.Ownership) []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(s.keys.owner(o.Shard), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.keys.node(o.Session.ID), clientv3.WithKeysOnly()),
	}
}

// fenced returns an error that wraps engine.ErrFenced when the owner key or the node key is not the ownership's.
func fenced(o engine.Ownership, owner, node *mvccpb.KeyValue) error {
	switch {
	case owner == nil || owner.ModRevision != o.Revision:
		return fmt.Errorf("%w: the owner key has changed", engine.ErrFenced)
	case node == nil || node.CreateRevision != o.Session.Revision:
		return fmt.Errorf("%w: session %s is gone", engine.ErrFenced, o.Session.ID)
	}
	return nil
}
