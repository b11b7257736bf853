package etcdstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

// Append is the commit. See store.Journal.
func (s *Store) Append(ctx context.Context, o store.Ownership, after store.Head, entry []byte) (int64, error) {
	rev, err := s.append(ctx, o, after, entry, nil, nil)
	if err != nil {
		return 0, fmt.Errorf("append entry %d of shard %d: %w", after.Number+1, o.Shard, err)
	}
	return rev, nil
}

// append makes the operations of also in the same transaction, if what is given holds.
func (s *Store) append(
	ctx context.Context,
	o store.Ownership,
	after store.Head,
	entry []byte,
	given []clientv3.Cmp,
	also []clientv3.Op,
) (int64, error) {
	if err := checkOwnership(o); err != nil {
		return 0, err
	}
	if (after.Number == 0) != (after.Revision == 0) {
		return 0, fmt.Errorf("%w: entry %d cannot have revision %d", store.ErrRefused, after.Number, after.Revision)
	}
	owner, node := s.keys.owner(o.Shard), s.keys.node(o.Session.ID)
	next, pointer := s.keys.entry(o.Shard, after.Number+1), s.keys.pointer(o.Shard)
	resp, err := s.transact(ctx,
		slices.Concat([]clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(owner), "=", o.Revision),
			clientv3.Compare(clientv3.LeaseValue(node), "=", o.Session.Lease),
			clientv3.Compare(clientv3.ModRevision(next), "=", 0),
		}, s.follows(o.Shard, after), given),
		append([]clientv3.Op{put(next, entry)}, also...),
		[]clientv3.Op{
			clientv3.OpGet(owner, clientv3.WithKeysOnly()),
			clientv3.OpGet(node),
			clientv3.OpGet(next),
			clientv3.OpGet(pointer),
		})
	if err != nil {
		return 0, err
	}
	if resp.Succeeded {
		return resp.Header.Revision, nil
	}
	return verdict(o, after, entry, evidence{
		owner:   found(resp, 0),
		node:    found(resp, 1),
		next:    found(resp, 2),
		pointer: found(resp, 3),
	})
}

// follows returns the compares that hold while the entry before is the one that the caller has folded. One that was
// copied here keeps a revision of its own: it is the only entry of its number that is as old as the cluster.
func (s *Store) follows(shard int, after store.Head) []clientv3.Cmp {
	before := s.predecessor(shard, after.Number)
	if after.Number == 0 || after.Revision > s.meta.base {
		return []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(before), "=", after.Revision)}
	}
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.Version(before), "=", 1),
		clientv3.Compare(clientv3.CreateRevision(before), "<", s.meta.base+s.meta.created),
	}
}

// predecessor returns the key that must be unchanged for an entry to follow entry number: that entry, which is never
// trimmed while it is the last; before the first entry the snapshot pointer, which is absent until the first trim.
func (s *Store) predecessor(shard int, number uint64) string {
	if number == 0 {
		return s.keys.pointer(shard)
	}
	return s.keys.entry(shard, number)
}

// evidence holds the keys that a refused append read, all at one revision; nil means absent.
type evidence struct{ owner, node, next, pointer *mvccpb.KeyValue }

// verdict says what became of an append whose compares failed. They may have failed because an earlier copy of it was
// applied, and once they have failed no copy can be applied any more.
func verdict(o store.Ownership, after store.Head, entry []byte, found evidence) (int64, error) {
	if found.next != nil {
		if _, there := carried(found.next.Value); bytes.Equal(there, entry) { // names its owner and epoch: nobody else writes the same
			return found.next.ModRevision, nil
		}
		if err := fenced(o, found.owner, found.node); err != nil {
			return 0, fmt.Errorf("%w: the entry was written by another", err)
		}
		return 0, fmt.Errorf("%w: key %s was written by somebody who does not own the shard", store.ErrAlien, found.next.Key)
	}
	if found.pointer != nil {
		kept, err := decodePointer(found.pointer.Value)
		if err != nil {
			return 0, fmt.Errorf("%w: read snapshot pointer: %w", store.ErrMoved, err)
		}
		if covered := oldest(kept).Entry; covered > after.Number { // entries before it may have been trimmed
			return 0, fmt.Errorf("%w: snapshots cover entry %d", store.ErrMoved, covered)
		}
	}
	if err := fenced(o, found.owner, found.node); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("%w: entry %d is not the one of revision %d", store.ErrRefused, after.Number, after.Revision)
}
